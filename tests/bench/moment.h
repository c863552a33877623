#pragma once

#include <cstdlib>

namespace firn {

// Whether nothing is measured, as under ctest, which runs each benchmark briefly so that none
// breaks unnoticed. For benchmarks of a fixed length; --benchmark_min_time shortens all others.
inline bool OnlyAMoment() { return std::getenv("FIRN_BENCH_MOMENT") != nullptr; }

}  // namespace firn
