#pragma once

#include <cstdint>
#include <ostream>

namespace firn {

// Numbers [begin, end) of one tag, owned by the holder of the value. `end` is at most kRangeEnd, so
// the largest number ever issued is 2^63 - 2, and the sum of two ends fits into 64 unsigned bits.
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }

  friend bool operator==(const Range&, const Range&) = default;
};

inline constexpr int64_t kRangeEnd = INT64_MAX;

inline std::ostream& operator<<(std::ostream& out, const Range& range) {
  return out << '[' << range.begin << ", " << range.end << ')';
}

}  // namespace firn
