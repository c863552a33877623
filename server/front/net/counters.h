#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string_view>

namespace firn::front {

// Why a connection ended.
enum class CloseCause : uint8_t {
  kPeer,             // the peer closed it, or asked for it
  kPeerBroke,        // reset, or lost
  kShutdown,         // this server is shutting down
  kTooMany,          // more connections than allowed
  kTooManyOfPeer,    // too many from the peer's address
  kUnknownProtocol,  // the first bytes match no protocol that is served
  kFrameTooLarge,
  kBadFrame,  // an invalid Thrift or Redis request
  kBadHttp,
  kHttpTooLarge,  // header or body
  kIdle,
  kHalfRequest,  // a request that did not arrive completely in time
  kUnread,       // answers that the peer does not read
  kTls,          // the handshake failed
  kNoMemory,     // not enough memory
};
inline constexpr size_t kCloseCauses = 15;
std::string_view CloseCauseName(CloseCause cause);

// The protocols with counters of their own.
enum class ProtocolKind : uint8_t { kThrift, kHttp, kRedis, kDubbo };
inline constexpr size_t kProtocolKinds = 4;
std::string_view ProtocolName(ProtocolKind kind);  // "thrift"

template <typename T>
class PerProtocol {
 public:
  T& operator[](ProtocolKind kind) { return values_[static_cast<size_t>(kind)]; }
  const T& operator[](ProtocolKind kind) const { return values_[static_cast<size_t>(kind)]; }

  // Calls `f(kind, value)` for each.
  template <typename F>
  void ForEach(F&& f) const {
    for (size_t i = 0; i < kProtocolKinds; ++i) f(static_cast<ProtocolKind>(i), values_[i]);
  }

 private:
  std::array<T, kProtocolKinds> values_{};
};

// A count with one writer and any number of readers.
class Count {
 public:
  void Add(uint64_t n) { Set(Get() + n); }
  void Set(uint64_t n) { value_.store(n, std::memory_order_relaxed); }
  uint64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// A latency histogram with a bucket for each power of two of microseconds. Written by one thread,
// read by any.
class LatencyCounts {
 public:
  // Bucket i counts latencies from 2^(i-1) to 2^i us, without the upper end. The last bucket counts
  // all longer ones, too.
  static constexpr size_t kBuckets = 21;

  void Add(int64_t took_us, uint64_t requests) {
    const auto us = static_cast<uint64_t>(took_us);
    buckets_[std::min<size_t>(static_cast<size_t>(std::bit_width(us)), kBuckets - 1)].Add(requests);
    total_us_.Add(us * requests);
  }

  struct Sums {
    std::array<uint64_t, kBuckets> buckets{};
    uint64_t total_us = 0;
  };
  void AddTo(Sums& sums) const;

 private:
  std::array<Count, kBuckets> buckets_;
  Count total_us_;
};

// Counters of one IO thread. Written by that thread, read by any.
struct alignas(64) LoopCounters {
  Count accepted;
  Count accept_failed;  // times that accepting paused for lack of descriptors or memory
  Count requests;       // requests that were served
  Count parked;         // requests that had to wait for ids
  Count output_paused;  // times that reading paused because answers were not read
  Count yielded;        // times that a connection reached the limit of a turn
  Count bytes_in;
  Count bytes_out;
  Count buffer_bytes;  // memory of all connections' buffers, updated a few times a second
  Count turned_ms;     // boot time of the last sweep over the connections
  std::array<Count, kCloseCauses> closed;
  // Time from the read that brought a request to the write of its answer.
  PerProtocol<LatencyCounts> latency;
  PerProtocol<Count> recognised;  // connections, by their first bytes
  PerProtocol<Count> ended;       // recognised connections that have ended

  Count& closed_by(CloseCause cause) { return closed[static_cast<size_t>(cause)]; }
};

// Sums over the IO threads, read at about the same time.
struct Totals {
  uint64_t accepted = 0, accept_failed = 0, requests = 0, parked = 0, output_paused = 0,
           yielded = 0, bytes_in = 0, bytes_out = 0, buffer_bytes = 0;
  std::array<uint64_t, kCloseCauses> closed{};
  PerProtocol<LatencyCounts::Sums> latency;
  PerProtocol<uint64_t> recognised, ended;

  void Add(const LoopCounters& loop);
  uint64_t closed_by(CloseCause cause) const { return closed[static_cast<size_t>(cause)]; }
  // Open connections: in total, and of one protocol.
  uint64_t open() const;
  uint64_t open(ProtocolKind kind) const { return recognised[kind] - ended[kind]; }
};

}  // namespace firn::front
