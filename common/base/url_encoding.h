#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Text as it stands in a URL's query or in a node's name, the way Java's URLEncoder writes it:
// letters, digits and "*-._" stay, a blank becomes '+', every other byte %XX. So a name may hold
// slashes and still be one path component, and Dubbo's tools read what we write.
std::string UrlEncode(std::string_view text);

// The inverse. A '%' without two hexadecimal digits after it is refused with its position, from 1;
// any byte may come out, so the caller judges the text.
Result<std::string> UrlDecode(std::string_view encoded);

// A byte as % and two digits, in upper case; and the byte of two such digits.
void AppendPercent(std::string& out, char byte);
std::optional<char> PercentByte(std::string_view digits);

}  // namespace firn
