#pragma once

#include <cstdint>

#include "common/base/units.h"

namespace firn {

// How many numbers a second are given out, smoothed over some seconds. Thread-compatible.
class Pace {
 public:
  static constexpr Milliseconds kSample{1'000};

  // `total` numbers have been given out by `now`, ever.
  void Note(int64_t total, BootMs now) {
    if (at_ == BootMs()) {
      at_ = now;
      total_ = total;
    }
    if (now - at_ < kSample) return;
    const double fresh =
        static_cast<double>(total - total_) * 1000.0 / static_cast<double>((now - at_).count());
    per_second_ += (fresh - per_second_) / 4;
    at_ = now;
    total_ = total;
  }

  double per_second() const { return per_second_; }

 private:
  double per_second_ = 0;
  int64_t total_ = 0;
  BootMs at_;
};

}  // namespace firn
