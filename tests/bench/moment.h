#pragma once

#include <cstdlib>

namespace firn {

// Whether the run is not a measurement, as under ctest, which runs each benchmark briefly to detect
// breakage. For benchmarks of a fixed length; --benchmark_min_time shortens all others.
inline bool OnlyAMoment() { return std::getenv("FIRN_BENCH_MOMENT") != nullptr; }

}  // namespace firn
