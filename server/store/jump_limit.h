#pragma once

#include <cstdint>

namespace firn {

// Maximum distance of a store's counter above the used numbers. A larger distance is treated as a
// mistake, because skipped numbers cannot be used later: the counter is not used until an operator
// raises the tag's start to it. At one million numbers per second, this distance lasts 35 years.
inline constexpr int64_t kJumpMax = int64_t{1} << 50;

}  // namespace firn
