#pragma once

#include <cstdlib>

namespace firn {

// Whether nothing is measured, as under ctest, which runs each benchmark for a moment so that none
// rots. For those whose length is their own: --benchmark_min_time says it to all others.
inline bool OnlyAMoment() { return std::getenv("FIRN_BENCH_MOMENT") != nullptr; }

}  // namespace firn
