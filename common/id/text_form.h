#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// How an id is written as text. A literal value, readable by any number of threads.
//
//   decimal       "1169786042799259000"; a negative id has its minus
//   base 62       digits, upper case, lower case: texts of equal length sort like their numbers
//   base 36       digits and letters: upper case when it is written, either one when it is read
//   Crockford 32  digits and letters without I, L, O and U; reads lower case, I and L as 1, O as 0
//                 and hyphens as nothing
//
// Bases 62, 36 and 32 write the id's 64 bits as an unsigned number, so that a layout with a version
// bit has texts too. Each id has one text in each form, and two ids never have the same.
enum class Base : uint8_t { kDecimal, kBase62, kBase36, kCrockford32 };

// As templates and flags say it: base62, base36 or base32.
std::optional<Base> BaseNamed(std::string_view name);

struct TextForm {
  static constexpr int kPadMax = 64;

  Base base = Base::kDecimal;
  int pad_to = 0;  // zeros in front up to this many characters, kPadMax at most

  void AppendTo(std::string& out, int64_t id) const;
  std::string Format(int64_t id) const;

  // The longest text that AppendTo writes.
  constexpr int length_max() const {
    const int natural = base == Base::kDecimal ? 20 : base == Base::kBase62 ? 11 : 13;
    return natural > pad_to ? natural : pad_to;
  }

  friend constexpr bool operator==(const TextForm&, const TextForm&) = default;
};

// The id that `text` stands for. Zeros in front are allowed, in any number up to kPadMax characters
// in all. kInvalid names the position, counted from 1, of the first character that no id's text
// has there, or of the digit at which the number becomes too large.
Result<int64_t> ParseId(Base base, std::string_view text);

}  // namespace firn
