#pragma once

#include "common/base/units.h"
#include "common/time/entropy.h"

namespace firn {

// The waiting time before a retry: doubles with each failure, up to a cap, with jitter over the
// upper half, so that callers that failed together do not retry together. Does not wait itself.
// One thread at a time. The entropy must outlive it.
//
//   delay n (from 0) is in [d/2, d] with d = min(first * 2^n, cap)
class Backoff {
 public:
  struct Options {
    Milliseconds first{100};   // at least 1 ms
    Milliseconds cap{10'000};  // at least `first`, at most a day
  };

  // Aborts if the options are out of range.
  Backoff(Options options, Entropy& entropy);

  // Returns the next waiting time, never zero.
  Milliseconds Next() { return Next(options_.cap); }
  // Like Next(), but at most `cap`, which is at least 1 ms.
  Milliseconds Next(Milliseconds cap);

  // Call after a success: the next waiting time is again the first.
  void Reset() { delay_ = options_.first; }

 private:
  const Options options_;
  Entropy& entropy_;
  Milliseconds delay_;
};

}  // namespace firn
