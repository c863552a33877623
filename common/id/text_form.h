#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The notation of an id as text. A literal value, readable by any number of threads.
//
//   decimal       "1169786042799259000"; a negative id has its minus
//   base 62       digits, upper case, lower case: texts of equal length sort like their numbers
//   base 36       digits and letters: written in upper case, parsed in either case
//   Crockford 32  digits and letters without I, L, O and U; parses lower case, I and L as 1 and O
//                 as 0, and ignores hyphens
//
// Bases 62, 36 and 32 write the id's 64 bits as an unsigned number, so that ids of a layout with a
// version bit have texts, too. In each form every id has one text, which no other id has.
enum class Base : uint8_t { kDecimal, kBase62, kBase36, kCrockford32 };

// The names in templates and flags: base62, base36 or base32.
std::optional<Base> BaseNamed(std::string_view name);

struct TextForm {
  static constexpr int kPadMax = 64;

  Base base = Base::kDecimal;
  int pad_to = 0;  // leading zeros up to this many characters, at most kPadMax

  void AppendTo(std::string& out, int64_t id) const;
  std::string Format(int64_t id) const;

  // Returns the length of the longest text that AppendTo writes.
  constexpr int length_max() const {
    const int natural = base == Base::kDecimal ? 20 : base == Base::kBase62 ? 11 : 13;
    return natural > pad_to ? natural : pad_to;
  }

  friend constexpr bool operator==(const TextForm&, const TextForm&) = default;
};

// Parses the text of an id. It may have leading zeros, up to kPadMax characters in all. kInvalid
// names the position, from 1, of the first invalid character, or of the digit at which the number
// becomes too large.
Result<int64_t> ParseId(Base base, std::string_view text);

}  // namespace firn
