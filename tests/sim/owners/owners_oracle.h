#pragma once

#include <array>
#include <cstdint>
#include <unordered_set>

#include "registry/owners/candidates.h"

namespace firn {

// Records the numbers that calls return, by partition. Throws a Violation if a number is returned
// twice, or is not larger than all numbers returned before an owner took it. (A larger number is
// also larger than all numbers returned before its call began.)
class OwnersOracle {
 public:
  // Returns the highest number that a call has returned. An owner must now take larger ones.
  int64_t Highest(size_t partition) const { return answered_[partition].highest; }
  // Without the numbers that copies returned.
  int64_t HighestOfOthers(size_t partition) const { return answered_[partition].of_others; }

  // Records that a call returns `number`. `beyond`: Highest when the owner took it. `of_copies`:
  // two copies of a machine may hold the number's range, so it is not checked. `beside_rollback`:
  // two processes may own the partition, so its order is not checked.
  void Answer(size_t partition, int64_t number, int64_t beyond, bool of_copies,
              bool beside_rollback);

  int64_t count() const { return count_; }

 private:
  struct Partition {
    int64_t highest = 0;
    int64_t of_others = 0;  // the highest whose order was checked
    std::unordered_set<int64_t> numbers{};
  };

  std::array<Partition, kPartitions> answered_;
  int64_t count_ = 0;
};

}  // namespace firn
