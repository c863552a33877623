#include "common/base/url_encoding.h"

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/parse.h"

namespace firn {
namespace {

// Unlike std::isalnum, does not depend on the locale.
constexpr bool StaysAsItIs(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '*' ||
         c == '-' || c == '.' || c == '_';
}

}  // namespace

void AppendPercent(std::string& out, char byte) {
  out += '%';
  for (const char digit : ToHex(std::string_view(&byte, 1))) {
    out += digit < 'a' ? digit : static_cast<char>(digit - 'a' + 'A');
  }
}

std::optional<char> PercentByte(std::string_view digits) {
  const std::optional<uint8_t> byte = ParseNumber<uint8_t>(digits, 16);
  if (!byte || digits.size() != 2) return std::nullopt;
  return static_cast<char>(*byte);
}

std::string UrlEncode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (StaysAsItIs(c)) {
      encoded += c;
    } else if (c == ' ') {
      encoded += '+';
    } else {
      AppendPercent(encoded, c);
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
    const std::optional<char> byte = PercentByte(encoded.substr(i + 1, 2));
    if (!byte) return Invalid(Cat("'%' at position ", i + 1, " is not followed by two hex digits"));
    text += *byte;
    i += 2;
  }
  return text;
}

}  // namespace firn
