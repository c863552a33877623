#include "server/pace_log.h"

#include <algorithm>
#include <cstdint>

namespace firn {
namespace {

PaceHistory::Sample SampleOf(const ServerPace& pace) {
  return {pace.ids, pace.refused, pace.p99_us.value_or(0)};
}

}  // namespace

// The periods of a paused process get empty samples: it did nothing in them.
void PaceLog::Tick(BootMs now) {
  const int64_t periods = (now - newest_end_) / PaceHistory::kEvery;
  if (periods == 0) return;
  const auto missed = std::min(static_cast<size_t>(periods - 1), PaceHistory::kSamplesMax);
  const std::lock_guard lock(mutex_);
  samples_.resize(samples_.size() + missed);
  samples_.push_back(SampleOf(measure_(now, true)));
  while (samples_.size() > PaceHistory::kSamplesMax) samples_.pop_front();
  newest_end_ = newest_end_ + PaceHistory::kEvery * periods;
}

PaceHistory PaceLog::Read(BootMs now) const {
  const std::lock_guard lock(mutex_);
  // `now` may be earlier than that of the last Tick, which another thread called.
  PaceHistory history{.age = std::max(now - newest_end_, Milliseconds(0)),
                      .samples = {samples_.begin(), samples_.end()}};
  if (history.age == Milliseconds(0) || history.age >= PaceHistory::kEvery) return history;
  history.samples.push_back(SampleOf(measure_(now, false)));
  history.age -= PaceHistory::kEvery;
  if (history.samples.size() > PaceHistory::kSamplesMax) {
    history.samples.erase(history.samples.begin());
  }
  return history;
}

}  // namespace firn
