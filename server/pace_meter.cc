#include "server/pace_meter.h"

#include <optional>
#include <utility>

namespace firn {
namespace {

using Buckets = std::array<uint64_t, front::LatencyCounts::kBuckets>;

// The upper end of the bucket in which the 99th of 100 new requests lies.
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

}  // namespace

PaceMeter::Counted PaceMeter::Add(const front::Totals& totals,
                                  const front::DeskCounters::Sums& sums, BootMs now) {
  Counted counted{.at = now, .calls = static_cast<int64_t>(sums.calls)};
  for (const auto& [tag, ids] : sums.issued) counted.ids += static_cast<int64_t>(ids);
  for (const uint64_t refused : sums.refused) counted.refused += static_cast<int64_t>(refused);
  totals.latency.ForEach([&](front::ProtocolKind, const front::LatencyCounts::Sums& one) {
    for (size_t i = 0; i < counted.took.size(); ++i) counted.took[i] += one.buckets[i];
  });
  return counted;
}

ServerPace PaceMeter::Read(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                           BootMs now) {
  const Counted counted = Add(totals, sums, now);
  const Counted before = std::exchange(last_, counted);
  return {.over = now - before.at,
          .ids = counted.ids - before.ids,
          .calls = counted.calls - before.calls,
          .refused = counted.refused - before.refused,
          .p99_us = P99(counted.took, before.took)};
}

}  // namespace firn
