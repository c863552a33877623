#pragma once

#include <chrono>
#include <cstdint>

#include "common/base/units.h"

namespace firn {

// A reading of both clocks at about the same moment.
struct Now {
  WallMs wall;
  BootMs boot;
};

// The source of time. Thread-safe. State machines do not hold a Clock: callers pass them a Now, so
// that a simulation can pass any.
class Clock {
 public:
  virtual ~Clock() = default;

  // Returns UTC by the machine's clock, which may step in either direction between two calls.
  virtual WallMs Wall() const = 0;

  // Returns the time since boot, suspended time included; never goes back.
  virtual BootMs Boot() const = 0;

  // Returns Boot() in microseconds, for measuring durations.
  virtual std::chrono::microseconds BootMicros() const { return Boot() - BootMs(0); }

  // Reads both clocks within a millisecond of each other, unless the thread was interrupted each
  // time: a wall time that was read long before its boot time would look like a step back.
  Now Read() const {
    for (int attempt = 1;; ++attempt) {
      const BootMs before = Boot();
      const Now now{Wall(), Boot()};
      if (now.boot - before <= Milliseconds(1) || attempt == kReadAttemptsMax) return now;
    }
  }

  // Returns the time until Wall() shows the next millisecond, at most 1 ms. A hint for waiting.
  virtual std::chrono::microseconds ToNextWallMs() const { return Milliseconds(1); }

 private:
  static constexpr int kReadAttemptsMax = 4;
};

// Makes the calling thread sleep. For programs that have nothing else to do; a server parks calls.
void SleepFor(std::chrono::microseconds duration);

// Returns the number of this process's time namespace, which determines the zero of Boot(). 1 if
// the kernel has only one namespace, 0 if it is unknown.
uint64_t TimeNamespace();

// The machine's clocks. Lives as long as the program.
const Clock& SystemClock();

}  // namespace firn
