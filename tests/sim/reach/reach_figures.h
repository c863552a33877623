#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/time/micros.h"

namespace firn {

using client::Micros;

// A histogram of times, in tenths of a second.
class Times {
 public:
  void Add(Micros time, uint64_t times = 1);
  uint64_t count() const { return count_; }
  double max_s() const { return max_s_; }
  double Quantile(double part) const;  // in seconds

 private:
  static constexpr int64_t kStepUs = 100'000;

  std::vector<uint64_t> steps_;
  uint64_t count_ = 0;
  double max_s_ = 0;
};

// Sums over all servers in one second, and the maxima of a single server.
struct Second {
  uint64_t asked = 0, asked_most = 0;    // requests for the list
  uint64_t bytes = 0, bytes_most = 0;    // of the answers
  uint64_t calls = 0, calls_most = 0;    // calls for ids
  uint64_t opened = 0, opened_most = 0;  // connections
  uint64_t met_trouble = 0;              // calls that tried a server that was down
  uint64_t registry_reads = 0;           // by all servers
  size_t up = 0;                         // servers that run
};

}  // namespace firn
