#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace firn {

// Returns untrusted text for a message: in single quotes, at most 64 bytes, then "..."; every byte
// that is not printable ASCII as \xNN. So no message contains a partial character, a line feed or
// an escape sequence of a terminal.
std::string Quoted(std::string_view text);

// Returns a message in at most `bytes_max` bytes, of at least 8. Replaces the middle of a longer
// message by "...": its begin names the object, and its end is the remedy. The part after the last
// "; " is kept whole if it has at most three quarters of the limit. Splits no UTF-8 character.
std::string Shortened(std::string_view message, size_t bytes_max);

}  // namespace firn
