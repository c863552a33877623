#pragma once

#include <chrono>
#include <cstdint>

#include "common/base/units.h"

namespace firn {

// Both clocks at about one moment.
struct Now {
  WallMs wall;
  BootMs boot;
};

// Where time comes from. Thread-safe. State machines do not hold a Clock: they are given a Now, so
// that a simulation can give them any.
class Clock {
 public:
  virtual ~Clock() = default;

  // UTC as the machine believes it; may step in either direction between two calls.
  virtual WallMs Wall() const = 0;

  // Time since boot, suspended time included; never goes back.
  virtual BootMs Boot() const = 0;

  // Boot() more finely, for those who measure how long something took.
  virtual std::chrono::microseconds BootMicros() const { return Boot() - BootMs(0); }

  // Both clocks within a millisecond of each other, unless the thread was interrupted each time:
  // a wall time read long before its boot time would look like a step back.
  Now Read() const {
    for (int attempt = 1;; ++attempt) {
      const BootMs before = Boot();
      const Now now{Wall(), Boot()};
      if (now.boot - before <= Milliseconds(1) || attempt == kReadAttemptsMax) return now;
    }
  }

  // How long until Wall() shows the next millisecond, at most one. A hint for those who wait.
  virtual std::chrono::microseconds ToNextWallMs() const { return Milliseconds(1); }

 private:
  static constexpr int kReadAttemptsMax = 4;
};

// Lets the calling thread sleep. For programs that have nothing else to do; a server parks.
void SleepFor(std::chrono::microseconds duration);

// Which zero Boot() counts from: the number of the time namespace of this process. 1 where the
// kernel has but one, 0 when nobody can tell.
uint64_t TimeNamespace();

// The machine's clocks. Lives as long as the program.
const Clock& SystemClock();

}  // namespace firn
