#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>

namespace firn {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Returns the text without blanks at its ends.
constexpr std::string_view Trimmed(std::string_view text, std::string_view blank = " \t") {
  const size_t begin = text.find_first_not_of(blank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

// Parses the whole of `text` as a number: digits, after a minus if Number is signed. Returns
// nullopt for everything else: no digits, a space, a plus, or a value outside the range of Number.
template <std::integral Number>
std::optional<Number> ParseNumber(std::string_view text, int base = 10) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

// Like ParseNumber, for numbers from `least` to `most`.
template <std::integral Number>
std::optional<Number> ParseNumberWithin(std::string_view text, Number least,
                                        Number most = std::numeric_limits<Number>::max()) {
  const std::optional<Number> number = ParseNumber<Number>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

// Parses a number that serves as a name and so has one spelling: no minus, no leading zeros.
template <std::unsigned_integral Number>
std::optional<Number> ParseIndex(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  return ParseNumber<Number>(text);
}

}  // namespace firn
