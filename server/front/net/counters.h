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
  kPeer,             // the other side closed it, or asked for it
  kPeerBroke,        // reset, or lost
  kShutdown,         // this server is shutting down
  kTooMany,          // more connections than allowed
  kTooManyOfPeer,    // the same, of its address
  kUnknownProtocol,  // the first bytes belong to no protocol that the door serves
  kFrameTooLarge,
  kBadFrame,  // a request of Thrift or Redis that cannot be read
  kBadHttp,
  kHttpTooLarge,  // header or body
  kIdle,
  kHalfRequest,  // a request that was begun and not finished in time
  kUnread,       // answers that the peer does not read
  kTls,          // the handshake failed
  kNoMemory,     // the host gave none for it
};
inline constexpr size_t kCloseCauses = 15;
std::string_view CloseCauseName(CloseCause cause);

// The protocols that are counted apart.
enum class ProtocolKind : uint8_t { kThrift, kHttp, kRedis, kDubbo };
inline constexpr size_t kProtocolKinds = 4;
std::string_view ProtocolName(ProtocolKind kind);  // "thrift"

// A value for each of them.
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

// How long requests took: a count for each power of two of microseconds. Written by one thread,
// read by any.
class LatencyCounts {
 public:
  // Bucket i holds what took less than 2^i us and no less than half of that; the last one all that
  // took longer.
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

// What one IO thread has done. Written by that thread, read by any.
struct alignas(64) LoopCounters {
  Count accepted;
  Count accept_failed;  // times that the listener waited for descriptors or memory
  Count requests;       // complete ones that were served
  Count parked;         // requests that had to wait for ids
  Count output_paused;  // times that reading stopped because answers were not read
  Count yielded;        // times that a connection had served its turn's requests
  Count bytes_in;
  Count bytes_out;
  Count buffer_bytes;  // memory of all connections' buffers, a few times a second
  Count turned_ms;     // when the thread swept its connections last, by the boot clock
  std::array<Count, kCloseCauses> closed;
  // From the read that brought a request to the write of its answer.
  PerProtocol<LatencyCounts> latency;
  PerProtocol<Count> recognised;  // connections, by their first bytes
  PerProtocol<Count> ended;       // of those

  Count& closed_by(CloseCause cause) { return closed[static_cast<size_t>(cause)]; }
};

// Sums over IO threads, at about one moment.
struct Totals {
  uint64_t accepted = 0, accept_failed = 0, requests = 0, parked = 0, output_paused = 0,
           yielded = 0, bytes_in = 0, bytes_out = 0, buffer_bytes = 0;
  std::array<uint64_t, kCloseCauses> closed{};
  PerProtocol<LatencyCounts::Sums> latency;
  PerProtocol<uint64_t> recognised, ended;

  void Add(const LoopCounters& loop);
  uint64_t closed_by(CloseCause cause) const { return closed[static_cast<size_t>(cause)]; }
  // Connections that are open: all, and those of one protocol.
  uint64_t open() const;
  uint64_t open(ProtocolKind kind) const { return recognised[kind] - ended[kind]; }
};

}  // namespace firn::front
