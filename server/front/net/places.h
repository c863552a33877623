#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "server/front/net/limits.h"

namespace boost::asio::ip {
class address;
}

namespace firn::front {

class Connection;

// A connection that may be closed to make room for others.
struct Closable {
  Connection* connection;
  uint64_t peer;
  int64_t since_ms;            // when its last progress was
  int rank = 0;                // within its peer, the highest is closed first
  bool before_others = false;  // closed first, however much other peers have
  uint64_t cost = 1;           // its part of the peer's total
  uint64_t of_peer = 0;        // the peer's total when this is the next to close
};

// Sorts them so that closing from the back always takes from the peer with the highest total: by
// rank, then the one without progress for longest. `total` returns a peer's total, given the sum of
// the costs in `all`.
void RankForClosing(std::vector<Closable>& all,
                    const std::function<uint64_t(uint64_t peer, uint64_t sum)>& total);

// Sorts connections whose `cost` is the memory of their buffers, so that closing from the back
// frees it. Memory counts multiplied by the time since the last progress: many connections that
// read are not closed because of a few that do not.
void RankForMemory(std::vector<Closable>& all, int64_t now_ms);

// Counts the connections of a front door and limits them, in total and per peer. Any thread.
//
// A few connections are admitted over the total: see OverLimit.
class Places {
 public:
  static constexpr size_t kOverLimitMax = 64;

  // Returns the peer at an IPv4 address, or in the IPv6 /64 network: a host with one address of it
  // has them all.
  static uint64_t PeerAt(const boost::asio::ip::address& address);
  // Returns the peer for all processes of one user on this host.
  static uint64_t PeerOf(uid_t user);

  explicit Places(const Limits& limits) : limits_(limits) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // The place of one connection. The destructor frees it; the Places must outlive it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), peer_(other.peer_), kind_(other.kind_) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(peer_, other.peer_);
      std::swap(kind_, other.kind_);
      return *this;
    }
    ~Place() {
      if (of_ != nullptr) of_->GiveBack(peer_, kind_);
    }

    // Admits the connection over the total. Returns false if kOverLimitMax others are.
    bool PutOverLimit() { return of_->PutOverLimit(*this); }
    // Excludes the connection from the total, because another server of the cluster uses it.
    void Exempt() {
      if (of_ != nullptr && kind_ != Kind::kExempt) of_->Exempt(*this);
    }
    // Returns whether the connection is part of the total.
    bool is_counted() const { return kind_ == Kind::kCounted; }

   private:
    friend class Places;
    enum class Kind : uint8_t { kCounted, kOverLimit, kExempt };
    Place(Places& of, uint64_t peer) : of_(&of), peer_(peer) {}

    Places* of_ = nullptr;
    uint64_t peer_ = 0;
    Kind kind_ = Kind::kCounted;
  };

  // Empty if this peer has as many connections as permitted.
  std::optional<Place> Take(uint64_t peer);

  // The number of the peer's connections.
  size_t Of(uint64_t peer) const;

  // There are more connections than permitted: one must be closed.
  bool overfull() const;

 private:
  void GiveBack(uint64_t peer, Place::Kind kind);
  bool PutOverLimit(Place& place);
  void Exempt(Place& place);
  // Counts one connection less of this kind. Call with the lock.
  void Uncount(Place::Kind kind);

  const Limits& limits_;
  mutable std::mutex mutex_;
  size_t taken_ = 0, over_limit_ = 0;
  std::unordered_map<uint64_t, size_t> of_peer_;
};

// The connections of one IO thread that were accepted although the front door is full, so that
// other servers of the cluster always find a place. Such a connection is closed if it makes any
// call but takeOwned, or does not prove within kProofMs that its peer is a server of the cluster.
class OverLimit {
 public:
  static constexpr int64_t kProofMs = 1'000;

  // Admits one more connection. If there are too many, closes the oldest one of the peer that has
  // most of them here. Returns false if there is none to close.
  bool Admit(Places::Place& place);
  // Adds a connection whose place was admitted.
  void Add(Connection& connection, int64_t now_ms);
  void Remove(const Connection& connection);
  // Closes the connections whose time is over. Called several times a second.
  void CheckDeadlines(int64_t now_ms);

 private:
  struct Admitted {
    Connection* connection;
    int64_t since_ms;
  };

  void ForgetServers();

  std::vector<Admitted> all_;  // the oldest first
};

}  // namespace firn::front
