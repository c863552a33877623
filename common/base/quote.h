#pragma once

#include <string>
#include <string_view>

namespace firn {

// Returns untrusted text for a message: in single quotes, at most 64 bytes, then "..."; every byte
// that is not printable ASCII as \xNN. So no message contains a partial character, a line feed or
// an escape sequence of a terminal.
std::string Quoted(std::string_view text);

}  // namespace firn
