#pragma once

#include <cstdint>

namespace firn {

// Ids in compact form: first, first + stride, ... `count` of them.
struct IdRun {
  int64_t first = 0;
  int64_t count = 0;   // at least 1
  int64_t stride = 1;  // at least 1

  int64_t At(int64_t index) const { return first + index * stride; }

  friend bool operator==(const IdRun&, const IdRun&) = default;
};

}  // namespace firn
