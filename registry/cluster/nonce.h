#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/time/entropy.h"

namespace firn {

// 128 random bits that name one attempt to claim a slot. A value.
//
// Sharp edge: drawn anew for every attempt, never for every process. A process that lost a slot,
// claimed it again and died before the answer would otherwise find "its" nonce in both the old
// grant file and the new record, and go on below what others used in between.
class Nonce {
 public:
  static constexpr size_t kTextBytes = 32;

  // Zero: no claim. A released or never used slot's record holds it.
  constexpr Nonce() = default;
  constexpr Nonce(uint64_t high, uint64_t low) : high_(high), low_(low) {}

  // A new one; never zero.
  static Nonce Draw(Entropy& entropy);

  // 32 lower-case hexadecimal digits; anything else is kCorrupt.
  static Result<Nonce> Parse(std::string_view text);
  std::string text() const;

  constexpr bool zero() const { return high_ == 0 && low_ == 0; }

  friend constexpr auto operator<=>(const Nonce&, const Nonce&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Nonce& n) { return out << n.text(); }

 private:
  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

}  // namespace firn
