#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/time/entropy.h"

namespace firn {

// The choices of a run that is done again and again, each time another way: depth first through all
// of them, or drawn by a seed. The first of each choice's ways is free; the others cost something
// where the kind of choice has a budget. Thread-compatible.
class Choices {
 public:
  enum class Kind : uint8_t { kFree, kPreemption, kStaleRead, kForesight };

  // All ways that the budgets allow.
  Choices(int preemptions, int stale_reads, int foresights)
      : budget_{0, preemptions, stale_reads, foresights} {}
  // Ways that are drawn.
  explicit Choices(uint64_t seed) : drawn_(true), entropy_(seed) {}

  // Before each run. False when there is no other way left.
  bool Begin();

  // One of 0 to `ways` - 1.
  size_t Among(size_t ways, Kind kind = Kind::kFree);

  // From now on the first way of each: a run that has shown what it can is brought to its end.
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
