#include "common/tag/tag_name.h"

#include <cstdint>

#include "common/base/cat.h"
#include "common/base/url_encoding.h"
#include "common/base/utf8.h"

namespace firn {
namespace {

constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::string UrlForm(std::string_view name) {
  const bool dot = name.starts_with('.');
  return (dot ? "%2E" : "") + UrlEncode(name.substr(dot ? 1 : 0));
}

// Bits are taken six at a time from the top; the last character's spare bits are zero.
std::string Base64Form(std::string_view name) {
  std::string out = "=";
  uint32_t bits = 0;
  int count = 0;
  for (const char c : name) {
    bits = (bits << 8) | static_cast<uint8_t>(c);
    for (count += 8; count >= 6; count -= 6) out += kBase64Url[(bits >> (count - 6)) & 63];
  }
  if (count > 0) out += kBase64Url[(bits << (6 - count)) & 63];
  return out;
}

Result<std::string> FromBase64Form(std::string_view digits) {
  std::string name;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : digits) {
    const size_t digit = kBase64Url.find(c);
    if (digit == kBase64Url.npos) return Invalid("contains a character that is not base64url");
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    name += static_cast<char>((bits >> count) & 0xFF);
  }
  return name;
}

}  // namespace

Status CheckTagName(std::string_view name) {
  if (name.empty()) return Invalid("the tag's name is empty");
  if (name.size() > kTagNameMax) {
    return Invalid(Cat("the tag's name has ", name.size(), " bytes; the maximum is ", kTagNameMax));
  }
  if (!IsPrintableUtf8(name)) {
    return Invalid("the tag's name is not valid UTF-8 or contains a control character");
  }
  if (name.front() == ' ' || name.back() == ' ') {
    return Invalid("the tag's name \"" + std::string(name) + "\" begins or ends with a space");
  }
  return {};
}

std::string EncodeTagName(std::string_view name) {
  std::string form = UrlForm(name);
  return form.size() <= kUrlFormMax ? form : Base64Form(name);
}

Result<std::string> DecodeTagName(std::string_view component) {
  const Result<std::string> name =
      component.starts_with('=') ? FromBase64Form(component.substr(1)) : UrlDecode(component);
  if (!name.ok() || !CheckTagName(*name).ok() || EncodeTagName(*name) != component) {
    return Corrupt("\"" + UrlForm(component.substr(0, kTagNameMax)) +
                   "\" is not the encoded name of a tag");
  }
  return *name;
}

}  // namespace firn
