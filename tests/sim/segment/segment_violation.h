#pragma once

#include <stdexcept>

namespace firn {

// A broken promise about segment numbers. Thrown where it is detected; ends the seed.
class SegmentViolation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Checks an assumption of the simulation itself.
inline void Require(bool holds, const char* what) {
  if (!holds) throw SegmentViolation(what);
}

}  // namespace firn
