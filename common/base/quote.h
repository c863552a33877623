#pragma once

#include <string>
#include <string_view>

namespace firn {

// A stranger's text as a sentence about it may show it: in single quotes, at most 64 bytes, then
// "..."; every byte that is not printable ASCII as \xNN. So no message carries half a character, a
// new line or a terminal's escape sequence.
std::string Quoted(std::string_view text);

}  // namespace firn
