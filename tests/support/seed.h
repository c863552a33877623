#pragma once

#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

namespace firn {

// The seed of a property test: FIRN_SEED if it is set, otherwise a constant, so that a run can be
// repeated with the seed that a failure printed. SCOPED_TRACE(SeedText(seed)) shows it with every
// failure in scope.
inline uint64_t TestSeed() {
  const char* given = std::getenv("FIRN_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20240101;
}

inline std::string SeedText(uint64_t seed) { return "FIRN_SEED=" + std::to_string(seed); }

}  // namespace firn
