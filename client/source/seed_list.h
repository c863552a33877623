#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "client/server_source.h"
#include "common/time/micros.h"

namespace firn::client {

// Which of the lists that servers tell is a client's.
//
//  1. The list with the highest version, wherever it was told.
//  2. A lower one when no server of the present list answered; or when the registry has confirmed
//     it well after the present one was taken. Then the registry's data were put back. (A server
//     that is cut off from the registry tells a lower one, too, but nobody confirms that.)
//  3. An empty one never.
//  4. When no server answers, the seeds are added, as a last resort, until one does.
//
// A value, thread-compatible.
class SeedList {
 public:
  static constexpr Micros kPutBackAfter{30'000'000};

  explicit SeedList(std::vector<KnownServer> seeds) : seeds_(std::move(seeds)) { AddSeeds(); }

  // A list of earlier days, which every told one replaces.
  void Begin(ServerList kept) {
    own_ = std::move(kept);
    with_seeds_.reset();
  }

  // True when a list was taken.
  bool Hear(const ToldServers& told, Micros now);
  void NobodyAnswers();

  // What the client is to have now, and the version of what was told last; 0: nothing was.
  const ServerList& list() const { return with_seeds_ ? *with_seeds_ : own_; }
  int64_t version() const { return version_; }
  bool nobody_answers() const { return nobody_answers_; }

 private:
  bool Wants(const ToldServers& told, Micros now) const;

  void AddSeeds();

  const std::vector<KnownServer> seeds_;
  ServerList own_;                        // as it was told; empty: nothing was
  std::optional<ServerList> with_seeds_;  // while they are wanted
  int64_t version_ = 0;
  Micros taken_at_{0};
  bool nobody_answers_ = false;
};

}  // namespace firn::client
