#pragma once

#include <cstdint>
#include <ostream>

namespace firn {

// Numbers [begin, end) of one tag that belong to the owner of the value. Ends are at most
// kRangeEnd, so the largest number that is ever issued is 2^63 - 2, and no sum of two ends
// overflows unsigned. A value.
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
