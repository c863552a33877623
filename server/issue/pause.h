#pragma once

#include "common/base/atomic.h"

namespace firn {

// About a microsecond: long enough for the other side to take several turns in its own cache,
// and far below any tick.
inline void PauseBriefly() {
  for (int i = 0; i < 64; ++i) PauseOnce();
}

// A lock for sections of a few nanoseconds. Not fair; a holder that is interrupted keeps the others
// spinning, which is why it is not the default anywhere.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) PauseBriefly();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  Atomic<bool> held_{false};
};

}  // namespace firn
