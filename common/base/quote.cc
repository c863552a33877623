#include "common/base/quote.h"

#include "common/base/hex.h"

namespace firn {

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

}  // namespace firn
