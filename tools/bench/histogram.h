#pragma once

#include <array>
#include <cstdint>

namespace firn {

// A histogram of durations in logarithmic steps with 64 linear parts each: quantiles are exact to
// 1.6 %, from 1 ns to 18 minutes, in 18 KiB. Thread-compatible.
class Histogram {
 public:
  // Counts `n` durations of `ns`. Negative ones count as 0, longer ones as the longest.
  void Record(int64_t ns, uint64_t n = 1) {
    counts_[IndexOf(ns)] += n;
    total_ += n;
  }

  // Adds the counts of `other`.
  void Add(const Histogram& other);

  // Returns the duration that `quantile` (0 to 1) of all durations do not exceed; 0 without any.
  int64_t Quantile(double quantile) const;

  uint64_t total() const { return total_; }

 private:
  static constexpr int kPartBits = 6;
  static constexpr int kSteps = 36;
  static constexpr int64_t kNsMax = (int64_t{1} << (kSteps + kPartBits - 2)) - 1;

  static uint32_t IndexOf(int64_t ns);
  // Returns the longest duration that the index covers.
  static int64_t UpperOf(uint32_t index);

  std::array<uint64_t, kSteps << kPartBits> counts_{};
  uint64_t total_ = 0;
};

}  // namespace firn
