#pragma once

#include <cstdint>

namespace firn {

// A store whose counter lies further than this above what has been used is taken for somebody's
// mistake, and left alone until somebody says so: numbers that are skipped never come back. At a
// million numbers a second it is 35 years.
inline constexpr int64_t kJumpMax = int64_t{1} << 50;

}  // namespace firn
