#include "common/base/hex.h"

namespace firn {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void Append(std::string& hex, uint8_t byte) {
  hex += kDigits[byte >> 4];
  hex += kDigits[byte & 15];
}

}  // namespace

std::string ToHex(std::span<const uint8_t> bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const uint8_t byte : bytes) Append(hex, byte);
  return hex;
}

std::string ToHex(std::string_view bytes) {
  return ToHex({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string ToHex(uint64_t number) {
  std::string hex;
  hex.reserve(16);
  for (int shift = 56; shift >= 0; shift -= 8) Append(hex, static_cast<uint8_t>(number >> shift));
  return hex;
}

std::optional<uint8_t> HexDigit(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const size_t at = kDigits.find(c);
  if (at == kDigits.npos) return std::nullopt;
  return static_cast<uint8_t>(at);
}

bool IsLowerHex(std::string_view text) { return text.find_first_not_of(kDigits) == text.npos; }

}  // namespace firn
