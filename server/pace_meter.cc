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
  return Between(std::exchange(last_, counted), counted);
}

ServerPace PaceMeter::Peek(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                           BootMs now) const {
  return Between(last_, Add(totals, sums, now));
}

}  // namespace firn
