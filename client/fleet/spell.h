#pragma once

#include <algorithm>
#include <cstdint>

#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// How long something is left alone that may go wrong again: twice as long each time, up to a
// longest, spread over the upper half so that clients do not come back together. Once it has been
// well for as long as the longest, the next one is a first one again. A value, thread-compatible.
class Spell {
 public:
  Spell(Micros first, Micros longest) : first_(first), longest_(longest) {}

  // One begins now; how long it lasts.
  Micros Next(Micros now, Entropy& entropy) {
    if (now > until_ + longest_) length_ = Micros(0);
    length_ = length_ == Micros(0) ? first_ : std::min(length_ * 2, longest_);
    const auto half = static_cast<uint64_t>(length_.count()) / 2;
    const Micros spread(static_cast<int64_t>(half + entropy.Below(half + 1)));
    until_ = now + spread;
    return spread;
  }

 private:
  Micros first_, longest_;
  Micros length_{0};  // of the last one, before it was spread; 0: there was none
  Micros until_{0};
};

}  // namespace firn::client
