#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/explain.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/slot.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Finds the process that issued an id, from the registry: the present or past holder of the id's
// slot at the id's tick.

// The result for one id.
struct Issuers {
  Explanation id;  // by the cluster's layout
  Slot slot;
  // The holders that may have issued it: none, one, or several if their periods overlap. The one in
  // the record is last.
  std::vector<PastHolder> holders;
  bool present = false;  // the last of `holders` holds the slot now
  std::string unknown;   // why `holders` is empty
};

// Looks up every id. kInvalid names the id that is impossible in the cluster's layout; otherwise
// fails only if there is no cluster or the registry does not answer. Blocks.
Result<std::vector<Issuers>> FindIssuers(BlockingCoordinator& registry,
                                         const std::vector<int64_t>& ids);

}  // namespace firn
