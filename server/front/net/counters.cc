#include "server/front/net/counters.h"

#include <numeric>

namespace firn::front {

std::string_view CloseCauseName(CloseCause cause) {
  static constexpr std::array<std::string_view, kCloseCauses> kNames = {
      "peer",      "peer_broke",       "shutdown",
      "too_many",  "unknown_protocol", "frame_too_large",
      "bad_frame", "bad_http",         "http_too_large",
      "idle",      "half_request",     "unread",
      "tls"};
  return kNames[static_cast<size_t>(cause)];
}

void LatencyCounts::AddTo(Sums& sums) const {
  for (size_t i = 0; i < kBuckets; ++i) sums.buckets[i] += buckets_[i].Get();
  sums.total_us += total_us_.Get();
}

void Totals::Add(const LoopCounters& loop) {
  accepted += loop.accepted.Get();
  accept_failed += loop.accept_failed.Get();
  requests += loop.requests.Get();
  parked += loop.parked.Get();
  output_paused += loop.output_paused.Get();
  yielded += loop.yielded.Get();
  bytes_in += loop.bytes_in.Get();
  bytes_out += loop.bytes_out.Get();
  for (size_t i = 0; i < kCloseCauses; ++i) closed[i] += loop.closed[i].Get();
  loop.thrift_latency.AddTo(thrift_latency);
  loop.http_latency.AddTo(http_latency);
}

uint64_t Totals::open() const {
  return accepted - std::accumulate(closed.begin(), closed.end(), uint64_t{0});
}

}  // namespace firn::front
