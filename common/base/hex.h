#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace firn {

// Hexadecimal digits, written in lower case. Parsing accepts upper case, too.

// Two digits for each byte.
std::string ToHex(std::span<const uint8_t> bytes);
std::string ToHex(std::string_view bytes);
// Sixteen digits.
std::string ToHex(uint64_t number);

std::optional<uint8_t> HexDigit(char c);

// Returns whether `text` consists of lower-case digits only, for texts with exactly one spelling.
bool IsLowerHex(std::string_view text);

}  // namespace firn
