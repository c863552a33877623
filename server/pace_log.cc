#include "server/pace_log.h"

#include <algorithm>
#include <cstdint>

namespace firn {

// The periods of a paused process get empty samples: it did nothing in them.
void PaceLog::Tick(BootMs now) {
  const int64_t periods = (now - newest_end_) / PaceHistory::kEvery;
  if (periods == 0) return;
  const ServerPace pace = measure_(now);
  const auto missed = std::min(static_cast<size_t>(periods - 1), PaceHistory::kSamplesMax);
  const std::lock_guard lock(mutex_);
  samples_.resize(samples_.size() + missed);
  samples_.push_back({pace.ids, pace.refused, pace.p99_us.value_or(0)});
  while (samples_.size() > PaceHistory::kSamplesMax) samples_.pop_front();
  newest_end_ = newest_end_ + PaceHistory::kEvery * periods;
}

PaceHistory PaceLog::Read(BootMs now) const {
  const std::lock_guard lock(mutex_);
  return {.age = now - newest_end_, .samples = {samples_.begin(), samples_.end()}};
}

}  // namespace firn
