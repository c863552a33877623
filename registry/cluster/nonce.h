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
// Sharp edge: draw a nonce for every attempt, not for every process. Otherwise a process that lost
// a slot, claimed it again and died before the answer would leave the same nonce in its old grant
// file and in the new record, and its successor would resume below ids that others used meanwhile.
class Nonce {
 public:
  static constexpr size_t kTextBytes = 32;

  // Zero: no claim. The record of a released or unused slot contains it.
  constexpr Nonce() = default;
  constexpr Nonce(uint64_t high, uint64_t low) : high_(high), low_(low) {}

  // Returns a new nonce; never zero.
  static Nonce Draw(Entropy& entropy);

  // Accepts 32 lower-case hexadecimal digits; anything else is kCorrupt.
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
