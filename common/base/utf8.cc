#include "common/base/utf8.h"

#include <bit>
#include <cstdint>
#include <optional>

#include "common/base/hex.h"

namespace firn {
namespace {

constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // by number of bytes
constexpr uint32_t kMost = 0x10FFFF;

}  // namespace

std::optional<uint32_t> TakeCodePoint(std::string_view& text) {
  const auto head = static_cast<uint8_t>(text[0]);
  const int ones = std::countl_one(head);
  const size_t size = ones == 0 ? 1 : static_cast<size_t>(ones);
  if (ones == 1 || size >= std::size(kLeast) || text.size() < size) return std::nullopt;
  uint32_t point = head & (0xFFu >> (ones + 1));
  for (const char c : text.substr(1, size - 1)) {
    const auto tail = static_cast<uint8_t>(c);
    if ((tail & 0xC0) != 0x80) return std::nullopt;
    point = (point << 6) | (tail & 0x3Fu);
  }
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < kLeast[size] || surrogate || point > kMost) return std::nullopt;
  text.remove_prefix(size);
  return point;
}

namespace {

// Removes one printable code point from the front of `text`. Returns false, without a change, if
// the first bytes are not one.
bool TakePrintable(std::string_view& text) {
  std::string_view rest = text;
  const std::optional<uint32_t> point = TakeCodePoint(rest);
  if (!point || *point < 0x20 || (*point >= 0x7F && *point < 0xA0)) return false;
  text = rest;
  return true;
}

}  // namespace

bool IsPrintableUtf8(std::string_view text) {
  while (!text.empty()) {
    if (!TakePrintable(text)) return false;
  }
  return true;
}

std::string ToPrintableUtf8(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const std::string_view before = text;
    if (TakePrintable(text)) {
      printable += before.substr(0, before.size() - text.size());
    } else {
      printable += "\\x" + ToHex(text.substr(0, 1));
      text.remove_prefix(1);
    }
  }
  return printable;
}

}  // namespace firn
