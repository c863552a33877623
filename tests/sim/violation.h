#pragma once

#include <stdexcept>
#include <string>

namespace firn {

// A broken promise of the protocol. Thrown where it is detected; ends the seed.
class Violation : public std::runtime_error {
 public:
  Violation(int invariant, const std::string& what)
      : std::runtime_error("invariant " + std::to_string(invariant) + ": " + what) {}
};

inline void Require(bool holds, int invariant, const char* what) {
  if (!holds) throw Violation(invariant, what);
}

// Thrown when a simulated process dies in the middle of an operation. Its host catches it.
struct ProcessDies {};

}  // namespace firn
