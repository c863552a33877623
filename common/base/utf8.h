#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn {

// Removes one code point from the front of `text`, which must not be empty. Returns nullopt,
// without a change, if the first bytes are not a code point.
std::optional<uint32_t> TakeCodePoint(std::string_view& text);

// Whether `text` is well-formed UTF-8 (no overlong form, no surrogate, nothing above U+10FFFF)
// without control characters (C0, DEL, C1): safe in a log line, a terminal, an INI file and JSON.
bool IsPrintableUtf8(std::string_view text);

// Returns `text` with every byte that is not part of printable UTF-8 written as \xNN.
std::string ToPrintableUtf8(std::string_view text);

}  // namespace firn
