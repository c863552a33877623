#include "common/base/quote.h"

#include <algorithm>

#include "common/base/hex.h"

namespace firn {
namespace {

// Whether the byte at `at` continues a UTF-8 character.
bool IsWithinCharacter(std::string_view text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr size_t kShownMax = 64;
  std::string out = "'";
  for (const char c : text.substr(0, kShownMax)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
    } else {
      out += "\\x" + ToHex(std::string_view(&c, 1));
    }
  }
  return out + (text.size() > kShownMax ? "'..." : "'");
}

std::string Shortened(std::string_view message, size_t bytes_max) {
  if (message.size() <= bytes_max) return std::string(message);
  constexpr std::string_view kLeftOut = "...";
  const size_t room = bytes_max - kLeftOut.size();
  const size_t remedy = message.size() - std::min(message.rfind("; "), message.size());
  const size_t tail = std::min(room - room / 4, std::max(room - room / 3, remedy));
  size_t head_end = room - tail, tail_begin = message.size() - tail;
  while (IsWithinCharacter(message, head_end)) --head_end;
  while (IsWithinCharacter(message, tail_begin)) ++tail_begin;
  std::string shown(message.substr(0, head_end));
  return shown.append(kLeftOut).append(message.substr(tail_begin));
}

}  // namespace firn
