#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Text in a URL's query or a node's name, encoded like Java's URLEncoder: letters, digits and
// "*-._" stay, a blank becomes '+', every other byte %XX. So a name with slashes is one path
// component, and Dubbo's tools can read it.
std::string UrlEncode(std::string_view text);

// The inverse. Refuses a '%' without two hexadecimal digits, with its position from 1. The result
// may contain any byte, so the caller must check it.
Result<std::string> UrlDecode(std::string_view encoded);

// Converts a byte to % and two upper-case digits, and two such digits to a byte.
void AppendPercent(std::string& out, char byte);
std::optional<char> PercentByte(std::string_view digits);

}  // namespace firn
