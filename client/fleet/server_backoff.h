#pragma once

#include <algorithm>
#include <cstdint>

#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Returns a random time up to `most`.
inline Micros RandomUpTo(Micros most, Entropy& entropy) {
  return Micros(static_cast<int64_t>(entropy.Below(static_cast<uint64_t>(most.count()) + 1)));
}

// Exponential backoff: each time is twice as long as the previous one, up to a maximum, with jitter
// over the upper half, so that clients do not return together. After `longest` without a backoff,
// it begins again with `first`. A value, thread-compatible.
class ServerBackoff {
 public:
  ServerBackoff(Micros first, Micros longest) : first_(first), longest_(longest) {}

  // Begins a backoff now. Returns its duration.
  Micros Next(Micros now, Entropy& entropy) {
    if (now > until_ + longest_) length_ = Micros(0);
    length_ = length_ == Micros(0) ? first_ : std::min(length_ * 2, longest_);
    const Micros spread = length_ / 2 + RandomUpTo(length_ / 2, entropy);
    until_ = now + spread;
    return spread;
  }

 private:
  Micros first_, longest_;
  Micros length_{0};  // of the last one, without jitter; 0: none
  Micros until_{0};
};

}  // namespace firn::client
