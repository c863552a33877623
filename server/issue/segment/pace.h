#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"

namespace firn {

// The number of numbers issued per second, smoothed over some seconds. Thread-compatible.
class Pace {
 public:
  static constexpr Milliseconds kSample{1'000};

  // Records that `total` numbers have been issued until `now`.
  void Note(int64_t total, BootMs now) {
    if (at_ == BootMs()) {
      at_ = now;
      total_ = total;
    }
    if (now - at_ < kSample) return;
    const double fresh =
        static_cast<double>(total - total_) * 1000.0 / static_cast<double>((now - at_).count());
    per_second_ += (fresh - per_second_) / 4;
    if (per_second_ < kLeast) per_second_ = 0;
    at_ = now;
    total_ = total;
  }

  double per_second() const { return per_second_; }

  // Returns how long `numbers` last at this rate; empty if there are no calls.
  std::optional<int64_t> SecondsFor(int64_t numbers) const {
    if (per_second_ <= 0) return std::nullopt;
    return static_cast<int64_t>(static_cast<double>(numbers) / per_second_);
  }

 private:
  // One number per hour. The smoothed rate never reaches zero by itself, and dividing by a lower
  // rate would soon overflow.
  static constexpr double kLeast = 1.0 / 3600;

  double per_second_ = 0;
  int64_t total_ = 0;
  BootMs at_;
};

}  // namespace firn
