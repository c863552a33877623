#pragma once

#include <cstdint>

namespace firn {

// Replaces the product's: a counter that a test moves, so that runs can be repeated.
inline uint64_t virtual_cycles = 0;

inline uint64_t CycleCount() { return virtual_cycles; }
inline bool CyclesAreSteady() { return true; }

inline constexpr uint64_t kFreshCycles = 1 << 18;

}  // namespace firn
