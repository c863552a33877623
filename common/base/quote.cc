#include "common/base/quote.h"

namespace firn {

std::string Quoted(std::string_view text) {
  constexpr size_t kShownMax = 64;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, kShownMax)) {
    if (c >= 0x20 && c < 0x7f) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 0xf]};
  }
  return out + (text.size() > kShownMax ? "'..." : "'");
}

}  // namespace firn
