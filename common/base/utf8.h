#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn {

// Whether `text` is well-formed UTF-8: no overlong form, no surrogate, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

// Whether `text` is UTF-8 without control characters (C0, DEL, C1): safe in a log line, a terminal,
// an INI file and JSON.
bool IsPrintableUtf8(std::string_view text);

// Takes one code point off the front of `text`, which must not be empty. Nothing, and `text` as it
// was, when its first bytes are not one.
std::optional<uint32_t> TakeCodePoint(std::string_view& text);

// Appends a code point, which must be one: not a surrogate, not above U+10FFFF.
void AppendUtf8(std::string& out, uint32_t point);

}  // namespace firn
