#include "server/pace_log.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace firn {
namespace {

using Buckets = std::array<uint64_t, front::LatencyCounts::kBuckets>;

// Returns the upper end of the bucket with the 99th percentile of the new requests.
std::optional<int64_t> P99(const Buckets& now, const Buckets& before) {
  uint64_t all = 0, seen = 0;
  for (size_t i = 0; i < now.size(); ++i) all += now[i] - before[i];
  if (all == 0) return std::nullopt;
  size_t i = 0;
  for (; i + 1 < now.size(); ++i) {
    seen += now[i] - before[i];
    if (seen * 100 >= all * 99) break;
  }
  return int64_t{1} << i;
}

PaceHistory::Sample SampleOf(const ServerPace& pace) {
  return {pace.ids, pace.refused, pace.p99_us.value_or(0)};
}

}  // namespace

PaceMeter::Counted PaceMeter::Add(const front::Totals& totals,
                                  const front::DeskCounters::Sums& sums, BootMs now) {
  constexpr auto kOverloaded = static_cast<size_t>(Reason::kOverloaded);
  Counted counted{.at = now,
                  .calls = static_cast<int64_t>(sums.calls),
                  .overloaded = static_cast<int64_t>(sums.refused[kOverloaded])};
  for (const auto& [tag, ids] : sums.issued) counted.ids += static_cast<int64_t>(ids);
  for (const uint64_t refused : sums.refused) counted.refused += static_cast<int64_t>(refused);
  totals.latency.ForEach([&](front::ProtocolKind, const front::LatencyCounts::Sums& one) {
    for (size_t i = 0; i < counted.took.size(); ++i) counted.took[i] += one.buckets[i];
  });
  return counted;
}

ServerPace PaceMeter::Between(const Counted& before, const Counted& now) {
  return {.over = now.at - before.at,
          .ids = now.ids - before.ids,
          .calls = now.calls - before.calls,
          .refused = now.refused - before.refused,
          .p99_us = P99(now.took, before.took)};
}

ServerPace PaceMeter::Read(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                           BootMs now) {
  const Counted counted = Add(totals, sums, now);
  const Counted before = std::exchange(last_, counted);
  const int64_t overloaded = counted.overloaded - before.overloaded;
  overloaded_ = overloaded >= 10 && overloaded * 100 > counted.calls - before.calls;
  return Between(before, counted);
}

ServerPace PaceMeter::Peek(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                           BootMs now) const {
  return Between(last_, Add(totals, sums, now));
}

// Takes one sample per period. Periods in which the process was paused get empty samples.
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
  // `now` may be earlier than at the last Tick, which another thread called.
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
