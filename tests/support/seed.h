#pragma once

#include <cstdint>
#include <cstdlib>

#include <gtest/gtest.h>

namespace firn {

// The seed of a property test: FIRN_SEED when it is set, otherwise the same one every time, so that
// a run is repeated by setting what a failure printed. Shown with every failure in scope by
// SCOPED_TRACE(SeedText(seed)).
inline uint64_t TestSeed() {
  const char* given = std::getenv("FIRN_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 20240101;
}

inline std::string SeedText(uint64_t seed) { return "FIRN_SEED=" + std::to_string(seed); }

}  // namespace firn
