#pragma once

#include "common/units.h"

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

  Now Read() const { return {Wall(), Boot()}; }
};

// The machine's clocks. Lives as long as the program.
const Clock& SystemClock();

}  // namespace firn
