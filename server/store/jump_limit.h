#pragma once

#include <cstdint>

namespace firn {

// How far a store's counter may lie above the used numbers. A counter further ahead counts as a
// mistake and is not used until an operator raises the tag's start to it: skipped numbers never
// return. At a million numbers a second, this distance is 35 years.
inline constexpr int64_t kJumpMax = int64_t{1} << 50;

}  // namespace firn
