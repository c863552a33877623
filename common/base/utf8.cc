#include "common/base/utf8.h"

namespace firn {
std::optional<uint32_t> TakeCodePoint(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t head = byte(0);
  const size_t size = head < 0x80 ? 1 : head < 0xC2 ? 0 : head < 0xE0 ? 2 : head < 0xF0 ? 3 : 4;
  if (size == 0 || head > 0xF4 || text.size() < size) return std::nullopt;
  uint32_t point = size == 1 ? head : head & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    point = (point << 6) | (byte(i) & 0x3Fu);
  }
  const bool overlong = (size == 3 && point < 0x800) || (size == 4 && point < 0x10000);
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (overlong || surrogate || point > 0x10FFFF) return std::nullopt;
  text.remove_prefix(size);
  return point;
}

void AppendUtf8(std::string& out, uint32_t point) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xC0 | (point >> 6));
    tail(0);
  } else if (point < 0x10000) {
    out += static_cast<char>(0xE0 | (point >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0 | (point >> 18));
    tail(12), tail(6), tail(0);
  }
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    if (!TakeCodePoint(text)) return false;
  }
  return true;
}

bool IsPrintableUtf8(std::string_view text) {
  while (!text.empty()) {
    const std::optional<uint32_t> point = TakeCodePoint(text);
    if (!point || *point < 0x20 || (*point >= 0x7F && *point < 0xA0)) return false;
  }
  return true;
}

}  // namespace firn
