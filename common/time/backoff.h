#pragma once

#include "common/base/units.h"
#include "common/time/entropy.h"

namespace firn {

// How long to wait before trying again: twice as long each time, up to a cap, spread evenly over
// the upper half so that many who failed together do not come back together. It waits for nobody
// itself. One thread at a time; holds on to its entropy.
//
//   delay n (from 0) is in [d/2, d] with d = min(first * 2^n, cap)
class Backoff {
 public:
  struct Options {
    Milliseconds first{100};   // at least 1 ms
    Milliseconds cap{10'000};  // at least `first`, at most a day
  };

  // Ends the process for options out of range.
  Backoff(Options options, Entropy& entropy);

  // The next wait, never zero.
  Milliseconds Next();

  // After a success: the next wait is a first one again.
  void Reset() { delay_ = options_.first; }

 private:
  const Options options_;
  Entropy& entropy_;
  Milliseconds delay_;
};

}  // namespace firn
