#pragma once

#include <cstdint>

#include "common/time/clock.h"

namespace firn {

// A machine's clock whose boot time runs at another rate than the truth. A value: a copied machine
// continues with a copy.
class RateClock final : public Clock {
 public:
  // `truth` must outlive it and its copies.
  RateClock(const Clock& truth, int64_t parts_per_million)
      : truth_(&truth), from_(truth.Boot()), rate_(kMillion + parts_per_million) {}

  WallMs Wall() const override { return truth_->Wall(); }
  BootMs Boot() const override {
    return base_ + Milliseconds((truth_->Boot() - from_).count() * rate_ / kMillion);
  }

  void SetRate(int64_t parts_per_million) {
    base_ = Boot();
    from_ = truth_->Boot();
    rate_ = kMillion + parts_per_million;
  }

 private:
  static constexpr int64_t kMillion = 1'000'000;

  const Clock* truth_;
  BootMs from_;
  BootMs base_{50'000};
  int64_t rate_;
};

}  // namespace firn
