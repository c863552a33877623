#include "common/base/url_encoding.h"

#include <charconv>

namespace firn {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

// Not std::isalnum: that one asks the locale.
constexpr bool StaysAsItIs(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '*' ||
         c == '-' || c == '.' || c == '_';
}

}  // namespace

std::string UrlEncode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (StaysAsItIs(c)) {
      encoded += c;
    } else if (c == ' ') {
      encoded += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
  }
  return encoded;
}

Result<std::string> UrlDecode(std::string_view encoded) {
  std::string text;
  text.reserve(encoded.size());
  for (size_t i = 0; i < encoded.size(); ++i) {
    if (encoded[i] != '%') {
      text += encoded[i] == '+' ? ' ' : encoded[i];
      continue;
    }
    const std::string_view digits = encoded.substr(i + 1, 2);
    unsigned byte = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.end()) {
      return Invalid("'%' at position " + std::to_string(i + 1) +
                     " is not followed by two hex digits");
    }
    text += static_cast<char>(byte);
    i += 2;
  }
  return text;
}

}  // namespace firn
