#pragma once

#include <cstdint>

#include "common/time/clock.h"

namespace firn {

// A machine's clocks, derived from the true time: a wall clock that can be wrong, drift and be set,
// and a boot clock that restarts with each boot. A value: a copied machine continues with a copy of
// its clocks.
class HostClock final : public Clock {
 public:
  // `truth` must outlive it and its copies.
  explicit HostClock(const Clock& truth) : truth_(&truth) {}

  WallMs Wall() const override { return truth_->Wall() + OffBy(); }
  BootMs Boot() const override { return BootMs((truth_->Boot() - booted_).count() + kFirstMs); }

  // Sets the wall clock.
  void StepWall(Milliseconds by);
  void SetPace(int64_t parts_per_million);
  void SetRight();
  // Makes the wall clock wrong by `off` until an operator or NTP corrects it, at the latest when
  // the boot clock of `truth` shows `right_at`.
  void SetOff(Milliseconds off, BootMs right_at);

  // Keeps the present offset until `right_at`.
  void SetRightAt(BootMs right_at);

  void Reboot() { booted_ = truth_->Boot(); }
  // Pauses the machine for `length`, which neither of its clocks counts.
  void Sleep(Milliseconds length);

  // Returns how far ahead an id clock can be because of steps and drifts that it follows at once.
  Milliseconds crept() const { return crept_ + Milliseconds(DriftAhead()); }

 private:
  static constexpr int64_t kFirstMs = 10'000;
  static constexpr BootMs kNever{INT64_MAX};

  Milliseconds OffBy() const;
  int64_t Drift() const;
  int64_t DriftAhead() const;
  void Settle();

  const Clock* truth_;
  BootMs booted_;
  BootMs paced_;
  BootMs right_at_ = kNever;
  int64_t offset_ms_ = 0;
  int64_t parts_per_million_ = 0;
  Milliseconds crept_{0};
};

}  // namespace firn
