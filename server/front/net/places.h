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

// Counts the connections of a front door and limits them, in total and per peer. Some places may be
// reserved for connections of other servers. Any thread.
class Places {
 public:
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
    Place(Place&& other) noexcept { *this = std::move(other); }
    Place& operator=(Place&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(peer_, other.peer_);
      std::swap(reserved_, other.reserved_);
      return *this;
    }
    ~Place() {
      if (of_ != nullptr) of_->GiveBack(*this);
    }

    // Makes it one of the places for other servers. Returns false if all of these are taken.
    bool Reserve() { return reserved_ || (reserved_ = of_ != nullptr && of_->TakeReserved()); }
    bool reserved() const { return reserved_; }

   private:
    friend class Places;
    Place(Places& of, uint64_t peer, bool reserved) : of_(&of), peer_(peer), reserved_(reserved) {}

    Places* of_ = nullptr;
    uint64_t peer_ = 0;
    bool reserved_ = false;
  };

  // Empty if this peer has as many connections as permitted, and no reserved place is free.
  std::optional<Place> Take(uint64_t peer);

  // The number of the peer's connections.
  size_t Of(uint64_t peer) const;

  // Sets the number of places for connections of other servers, at most half of all. Clients get
  // the others.
  void SetReserved(size_t places);

  // There are more connections in the clients' places than permitted: one must be closed, or get a
  // reserved place.
  bool overfull() const;

 private:
  bool TakeReserved();
  void GiveBack(const Place& place);

  const Limits& limits_;
  mutable std::mutex mutex_;
  size_t taken_ = 0;  // except reserved ones
  size_t reserved_ = 0, reserved_taken_ = 0;
  std::unordered_map<uint64_t, size_t> of_peer_;
};

}  // namespace firn::front
