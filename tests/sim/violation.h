#pragma once

#include <stdexcept>
#include <string>

namespace firn {

// A promise of the protocol was broken: thrown where it is detected; ends the seed.
class Violation : public std::runtime_error {
 public:
  Violation(int invariant, const std::string& what)
      : std::runtime_error("invariant " + std::to_string(invariant) + ": " + what) {}
};

inline void Require(bool holds, int invariant, const char* what) {
  if (!holds) throw Violation(invariant, what);
}

// A simulated process dies in the middle of an operation; caught by its host.
struct ProcessDies {};

}  // namespace firn
