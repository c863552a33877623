#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "client/fleet/lots.h"
#include "common/time/micros.h"
#include "tests/sim/reach/reach_figures.h"

namespace firn {

// One list of servers, shared by all clients that know its version.
struct Listed {
  Micros since;
  std::vector<uint32_t> servers;
  client::Lots lots;

  Listed(Micros since_when, std::vector<uint32_t> which);
};

// The registry, and the state that each server has read, in virtual time. Each server reads once a
// second, at its own time within the second (ServerRoll::kReadEvery), and gets the answer at once.
class ReachRegistry {
 public:
  explicit ReachRegistry(size_t servers);

  // Replaces the list from now on and increments its version.
  void Change(Micros now, std::vector<uint32_t> servers);

  int64_t version() const { return static_cast<int64_t>(lists_.size()); }
  const Listed& List(int64_t version) const { return *lists_[static_cast<size_t>(version - 1)]; }

  // Returns the version that `server` has read by `now`. LookedAt returns the time of that reading.
  int64_t VersionAt(uint32_t server, Micros now) const;
  Micros LookedAt(uint32_t server, Micros now) const;

  // Returns the number of nodes and folders that `server` reads in the second from `now` on.
  uint64_t ReadsOf(uint32_t server, Micros now) const;

 private:
  std::vector<std::unique_ptr<const Listed>> lists_;
  std::vector<Micros> look_at_;  // time of reading within each second
};

}  // namespace firn
