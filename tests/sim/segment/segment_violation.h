#pragma once

#include <stdexcept>

namespace firn {

// A promise about segment numbers was broken: thrown where it is seen, ends the seed.
class SegmentViolation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the simulation itself takes for granted.
inline void Require(bool holds, const char* what) {
  if (!holds) throw SegmentViolation(what);
}

}  // namespace firn
