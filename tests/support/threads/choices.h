#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/time/entropy.h"

namespace firn {

// The choices of a run that is repeated, each time in another way: depth first through all of them,
// or drawn by a seed. The first option of each choice is free; the others cost something if the
// kind of choice has a budget. Thread-compatible.
class Choices {
 public:
  enum class Kind : uint8_t { kFree, kPreemption, kStaleRead, kForesight };

  // Tries all options that the budgets permit.
  Choices(int preemptions, int stale_reads, int foresights)
      : budget_{0, preemptions, stale_reads, foresights} {}
  // Draws options.
  explicit Choices(uint64_t seed) : drawn_(true), entropy_(seed) {}

  // Call before each run. Returns false if no option is left.
  bool Begin();

  // Returns one of 0 to `ways` - 1.
  size_t Among(size_t ways, Kind kind = Kind::kFree);

  // From now on takes the first option of each choice, to end a run that has shown its result.
  void Settle() { settled_ = true; }

 private:
  struct Choice {
    size_t taken;
    size_t ways;
  };

  size_t Draw(size_t ways, Kind kind);

  const int budget_[4] = {0, 0, 0, 0};
  int left_[4] = {0, 0, 0, 0};
  const bool drawn_ = false;
  SeededEntropy entropy_{0};
  std::vector<Choice> path_;
  size_t depth_ = 0;
  bool begun_ = false;
  bool settled_ = false;
};

}  // namespace firn
