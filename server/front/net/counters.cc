#include "server/front/net/counters.h"

#include <numeric>

namespace firn::front {

std::string_view CloseCauseName(CloseCause cause) {
  switch (cause) {
    case CloseCause::kPeer:
      return "peer";
    case CloseCause::kPeerBroke:
      return "peer_broke";
    case CloseCause::kShutdown:
      return "shutdown";
    case CloseCause::kTooMany:
      return "too_many";
    case CloseCause::kTooManyOfPeer:
      return "too_many_of_peer";
    case CloseCause::kUnknownProtocol:
      return "unknown_protocol";
    case CloseCause::kFrameTooLarge:
      return "frame_too_large";
    case CloseCause::kBadFrame:
      return "bad_frame";
    case CloseCause::kBadHttp:
      return "bad_http";
    case CloseCause::kHttpTooLarge:
      return "http_too_large";
    case CloseCause::kIdle:
      return "idle";
    case CloseCause::kHalfRequest:
      return "half_request";
    case CloseCause::kUnread:
      return "unread";
    case CloseCause::kTls:
      return "tls";
    case CloseCause::kNoMemory:
      return "no_memory";
  }
  return "no such cause";
}

std::string_view ProtocolName(ProtocolKind kind) {
  switch (kind) {
    case ProtocolKind::kThrift:
      return "thrift";
    case ProtocolKind::kHttp:
      return "http";
    case ProtocolKind::kRedis:
      return "redis";
    case ProtocolKind::kDubbo:
      return "dubbo";
  }
  return "no such protocol";
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
  buffer_bytes += loop.buffer_bytes.Get();
  for (size_t i = 0; i < kCloseCauses; ++i) closed[i] += loop.closed[i].Get();
  loop.latency.ForEach(
      [this](ProtocolKind kind, const LatencyCounts& one) { one.AddTo(latency[kind]); });
  const auto add = [](PerProtocol<uint64_t>& sums) {
    return [&sums](ProtocolKind kind, const Count& one) { sums[kind] += one.Get(); };
  };
  loop.recognised.ForEach(add(recognised));
  loop.ended.ForEach(add(ended));
}

uint64_t Totals::open() const {
  return accepted - std::accumulate(closed.begin(), closed.end(), uint64_t{0});
}

}  // namespace firn::front
