#pragma once

#include <array>
#include <cstdint>
#include <unordered_set>

#include "registry/owners/candidates.h"

namespace firn {

// Knows every number of every partition that was answered, and throws a Violation if one is
// answered twice, or is not larger than all that were answered before it was taken. (So it is
// larger than all that were answered before its call began.)
class OwnersOracle {
 public:
  // The highest number that was answered. What is taken now must be larger.
  int64_t Highest(size_t partition) const { return answered_[partition].highest; }

  // `of_copies`: the number's range may be in the memory of two copies of a machine.
  void Answer(size_t partition, int64_t number, int64_t beyond, bool of_copies);

  int64_t count() const { return count_; }

 private:
  struct Partition {
    int64_t highest = 0;
    std::unordered_set<int64_t> numbers{};
  };

  std::array<Partition, kPartitions> answered_;
  int64_t count_ = 0;
};

}  // namespace firn
