#pragma once

#include <cstdint>

namespace firn {

// The processor's cycle counter, for checking whether a clock reading is still fresh. It is not a
// clock: its rate is unknown, it may restart after a suspension, and no visible time is derived
// from it. Thread-safe.
inline uint64_t CycleCount() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // its header has 40,000 lines
#else
  return 0;
#endif
}

// Returns whether the counter runs at one rate on all processors, also while they idle. If not, the
// counter cannot show freshness, and every use must read a real clock.
bool CyclesAreSteady();

// A number of cycles that take less than 0.5 ms on a processor of 0.6 GHz or more.
inline constexpr uint64_t kFreshCycles = 1 << 18;

}  // namespace firn
