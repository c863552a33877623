#pragma once

#include <cstdint>

namespace firn {

// The processor's cycle counter, as a gauge of how fresh a clock reading still is. It is not a
// clock: its pace is not known, it may start anew after a suspension, and no time that anybody sees
// is ever made from it. Thread-safe.
inline uint64_t CycleCount() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();  // its header has 40,000 lines
#else
  return 0;
#endif
}

// Whether the counter runs on while the processor idles, at one pace on all of them. Where it does
// not, a reading of it says nothing about freshness and every use must read a real clock.
bool CyclesAreSteady();

// Cycles that are surely over within half a millisecond on a processor of 0.6 GHz or more.
inline constexpr uint64_t kFreshCycles = 1 << 18;

}  // namespace firn
