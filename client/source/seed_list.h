#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "client/server_source.h"
#include "common/time/micros.h"

namespace firn::client {

// Decides which of the servers' lists the client uses.
//
//  1. The list with the highest version, from any server.
//  2. A list with a lower version is used if no server of the present list answered. It is also
//     used if the registry has confirmed it well after the present list was received, because the
//     registry was then reset to older data. (A server that has lost the registry has a lower
//     version, too, but without such a confirmation.)
//  3. Never an empty list.
//  4. While no server answers, the seeds are added as a last resort.
//
// A value, thread-compatible.
class SeedList {
 public:
  static constexpr Micros kPutBackAfter{30'000'000};

  explicit SeedList(std::vector<KnownServer> seeds) : seeds_(std::move(seeds)) { AddSeeds(); }

  // Sets a list from the cache, which any server's list replaces.
  void Begin(ServerList kept) {
    own_ = std::move(kept);
    with_seeds_.reset();
  }

  // Returns whether the list is used.
  bool Hear(const ToldServers& told, Micros now);
  void OnNoAnswer();

  // The list for the client, and the version of the last list from a server; 0: none.
  const ServerList& list() const { return with_seeds_ ? *with_seeds_ : own_; }
  int64_t version() const { return version_; }
  bool nobody_answers() const { return nobody_answers_; }

 private:
  bool Wants(const ToldServers& told, Micros now) const;

  void AddSeeds();

  const std::vector<KnownServer> seeds_;
  ServerList own_;                        // as the server sent it; empty: none
  std::optional<ServerList> with_seeds_;  // set while no server answers
  int64_t version_ = 0;
  Micros taken_at_{0};
  bool nobody_answers_ = false;
};

}  // namespace firn::client
