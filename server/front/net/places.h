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

// A connection that can be closed for the sake of others.
struct Closable {
  Connection* connection;
  uint64_t peer;
  int64_t since_ms;            // since when nothing has moved
  int rank = 0;                // within its peer, the highest is closed first
  bool before_others = false;  // whatever others have
  uint64_t cost = 1;           // its part of what its peer has
  uint64_t of_peer = 0;        // what its peer has when its turn comes
};

// Sorts them so that closing one after another from the back always takes from the peer that has
// most: by rank, then the one for which nothing has moved for longest. `total` returns what a peer
// has, given the sum of its costs.
void RankForClosing(std::vector<Closable>& all,
                    const std::function<uint64_t(uint64_t peer, uint64_t sum)>& total);

// The connections of a door: a limit for all together, and one for each peer. Any thread.
class Places {
 public:
  // Returns the peer at an IPv4 address, or in the network that the first 64 bits of an IPv6
  // address name: a host with one such address has them all.
  static uint64_t PeerAt(const boost::asio::ip::address& address);
  // Returns the peer that consists of the processes of one user on this host.
  static uint64_t PeerOf(uid_t user);

  explicit Places(const Limits& limits) : limits_(limits) {}
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // One connection's place. Its destructor gives it back; the Places must outlive it.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept : of_(std::exchange(other.of_, nullptr)), peer_(other.peer_) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(peer_, other.peer_);
      return *this;
    }
    ~Place() {
      if (of_ != nullptr) of_->GiveBack(peer_);
    }

   private:
    friend class Places;
    Place(Places& of, uint64_t peer) : of_(&of), peer_(peer) {}

    Places* of_ = nullptr;
    uint64_t peer_ = 0;
  };

  // Empty: this peer has as many as permitted.
  std::optional<Place> Take(uint64_t peer);

  // How many of this peer are in.
  size_t Of(uint64_t peer) const;

  // More connections are in than permitted: one must be closed.
  bool overfull() const;

 private:
  void GiveBack(uint64_t peer);

  const Limits& limits_;
  mutable std::mutex mutex_;
  size_t taken_ = 0;
  std::unordered_map<uint64_t, size_t> of_peer_;
};

}  // namespace firn::front
