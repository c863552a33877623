#pragma once

#include <cstdint>
#include <ostream>

namespace firn {

// Ids in compact form: `count` ids first, first + stride, and so on.
struct IdRun {
  int64_t first = 0;
  int64_t count = 0;   // at least 1
  int64_t stride = 1;  // at least 1

  int64_t At(int64_t index) const { return first + index * stride; }
  int64_t last() const { return At(count - 1); }

  friend bool operator==(const IdRun&, const IdRun&) = default;
  friend std::ostream& operator<<(std::ostream& out, const IdRun& run) {
    return out << run.count << " from " << run.first << " by " << run.stride;
  }
};

}  // namespace firn
