#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "client/client_view.h"
#include "client/fleet/server.h"
#include "client/fleet/tag_limits.h"
#include "client/fleet/two_choices.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// An immutable snapshot of the servers that calls may use, the healthiest first. Any number of
// threads pick from it without a lock. The Fleet makes another when a server's standing changes,
// and at `good_until` while weights grow.
class Roster {
 public:
  struct Entry {
    ServerPtr server;
    int64_t weight;         // above 0
    ServerHealth standing;  // for any tag
    bool spare;             // not in the client's subset
    bool elsewhere;         // not in the client's rack

    // Servers with a smaller rank are used first.
    int rank(ServerHealth at_best = ServerHealth::kHealthy) const {
      return 4 * static_cast<int>(std::max(standing, at_best)) + (spare ? 2 : 0) +
             (elsewhere ? 1 : 0);
    }
  };

  // `entries` must be sorted by rank. `own_numbers`: tags that need no machine id.
  Roster(std::vector<Entry> entries, std::shared_ptr<const TagSet> own_numbers, Micros good_until);

  Micros good_until() const { return good_until_; }

  // Returns one of the best servers for `tag` that is not in `tried`, or null.
  ServerPtr Pick(std::string_view tag, std::span<const ServerPtr> tried, Micros now,
                 Entropy& entropy) const;

 private:
  const std::vector<Entry> entries_;
  const size_t best_;  // number of servers with the rank of the first
  const std::shared_ptr<const TagSet> own_numbers_;
  const TwoChoices of_best_, of_all_;
  const Micros good_until_;
};

}  // namespace firn::client
