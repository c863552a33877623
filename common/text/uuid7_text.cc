#include "common/text/uuid7_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int kTimeBits = 48, kSpareBits = 10;
constexpr uint64_t kVersion = 7, kVariant = 2;
constexpr int kLowBits = 52;  // of the id, after the variant
constexpr uint64_t kLowMask = (uint64_t{1} << kLowBits) - 1;

// The two halves of a UUID.
struct Halves {
  uint64_t high = 0, low = 0;

  friend bool operator==(const Halves&, const Halves&) = default;
};

Halves HalvesOf(const Layout& layout, int64_t id, const IdFields& fields) {
  const auto bits = static_cast<uint64_t>(id);
  const auto time = static_cast<uint64_t>(layout.StartOf(fields.tick).ms());
  return {.high = time << (64 - kTimeBits) | kVersion << 12 | bits >> kLowBits,
          .low = kVariant << 62 | (bits & kLowMask) << kSpareBits};
}

constexpr std::array<size_t, 4> kHyphens{8, 13, 18, 23};

// Returns nullopt if the text does not have the form of a UUID.
std::optional<Halves> ReadHalves(std::string_view text) {
  if (text.size() != Uuid7Text::width()) return std::nullopt;
  Halves halves;
  for (size_t at = 0; at < text.size(); ++at) {
    if (std::find(kHyphens.begin(), kHyphens.end(), at) != kHyphens.end()) {
      if (text[at] != '-') return std::nullopt;
      continue;
    }
    const std::optional<uint8_t> digit = HexDigit(text[at]);
    if (!digit) return std::nullopt;
    uint64_t& half = at < kHyphens[2] ? halves.high : halves.low;
    half = half << 4 | *digit;
  }
  return halves;
}

}  // namespace

void Uuid7Text::AppendTo(std::string& out, int64_t id) const {
  const Result<IdFields> fields = layout_.Unpack(id);
  if (!fields.ok()) {
    out += Cat(id);
    return;
  }
  const Halves halves = HalvesOf(layout_, id, *fields);
  const size_t begin = out.size();
  out += ToHex(halves.high);
  out += ToHex(halves.low);
  for (const size_t at : kHyphens) out.insert(begin + at, 1, '-');
}

Result<int64_t> Uuid7Text::ParseId(std::string_view text) const {
  if (const std::optional<Halves> halves = ReadHalves(text)) {
    const uint64_t high = halves->high << kLowBits, low = halves->low >> kSpareBits & kLowMask;
    const auto id = static_cast<int64_t>(high | low);
    const Result<IdFields> fields = layout_.Unpack(id);
    if (fields.ok() && HalvesOf(layout_, id, *fields) == *halves) return id;
  }
  return Invalid(
      Cat(Quoted(text), " is not a UUID of version 7 of an id of the layout ", layout_.text()));
}

}  // namespace firn
