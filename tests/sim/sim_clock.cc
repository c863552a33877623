#include "tests/sim/sim_clock.h"

#include <algorithm>

namespace firn {
namespace {

constexpr int64_t kMillion = 1'000'000;
// The largest step that an id clock follows at once (common/id/id_pace.h, rule 3).
constexpr Milliseconds kFollowed{5'000};

}  // namespace

int64_t HostClock::Drift() const {
  return (truth_->Boot() - paced_).count() * parts_per_million_ / kMillion;
}

int64_t HostClock::DriftAhead() const { return std::max<int64_t>(Drift(), 0); }

Milliseconds HostClock::OffBy() const {
  if (truth_->Boot() >= right_at_) return Milliseconds(0);
  return Milliseconds(offset_ms_ + Drift());
}

// The clock's current time becomes its offset.
void HostClock::Settle() {
  const bool right = truth_->Boot() >= right_at_;
  crept_ += Milliseconds(DriftAhead());
  offset_ms_ = OffBy().count();
  paced_ = truth_->Boot();
  if (!right) return;
  right_at_ = kNever;
  parts_per_million_ = 0;
}

void HostClock::StepWall(Milliseconds by) {
  Settle();
  if (by <= kFollowed) crept_ += std::max(by, Milliseconds(0));
  offset_ms_ += by.count();
}

void HostClock::SetPace(int64_t parts_per_million) {
  Settle();
  parts_per_million_ = parts_per_million;
}

void HostClock::SetRight() { SetOff(Milliseconds(0), kNever); }

void HostClock::SetOff(Milliseconds off, BootMs right_at) {
  Settle();
  // An id clock may have followed the clock while it was ahead.
  crept_ += std::clamp(off - Milliseconds(offset_ms_), Milliseconds(0), kFollowed);
  offset_ms_ = off.count();
  parts_per_million_ = 0;
  right_at_ = right_at;
}

void HostClock::SetRightAt(BootMs right_at) {
  Settle();
  right_at_ = right_at;
}

void HostClock::Sleep(Milliseconds length) {
  Settle();
  booted_ += length;
  offset_ms_ -= length.count();
}

}  // namespace firn
