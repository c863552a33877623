#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace firn {

// Records and checks all numbers of one segment tag that the callers of a drill got. Thread-safe.
class Takings {
 public:
  struct Numbers {
    int64_t first;
    int64_t count;
  };

  // The highest number that any caller has got; 0 before the first.
  int64_t highest() const { return highest_; }
  int64_t answers() const { return answers_; }

  // Adds the numbers of a call. `before`: highest() before the call began.
  void Add(Numbers numbers, int64_t before);

  // Adds numbers whose call time is unknown, so they are not checked for rising.
  void AddLate(const std::vector<int64_t>& numbers);

  struct Findings {
    int64_t ids = 0;
    int64_t duplicates = 0;
    // Number of calls that got a number not above all numbers of calls answered before they began.
    // Must be 0 only for tags that rise over the whole cluster.
    int64_t fallen = 0;
  };
  Findings Judge() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Numbers> all_;  // under mutex_
  int64_t fallen_ = 0;        // under mutex_
  std::atomic<int64_t> highest_{0};
  std::atomic<int64_t> answers_{0};
};

}  // namespace firn
