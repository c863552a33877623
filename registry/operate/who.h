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

// Which process issued an id, as far as the registry remembers: the holder of the id's slot at the
// id's tick, now or before.

// What is said of one id.
struct Issuers {
  Explanation id;  // by the cluster's layout
  Slot slot;
  // Who may have issued it: none, one, or several where their times cannot be told apart. Who
  // stands in the record comes last.
  std::vector<PastHolder> holders;
  bool present = false;  // the last of them holds the slot now
  std::string unknown;   // why, when there is none
};

// Looks up every id. kInvalid names the id that the cluster's layout cannot give; otherwise fails
// only when there is no cluster or the registry does not answer. Blocks.
Result<std::vector<Issuers>> FindIssuers(BlockingCoordinator& registry,
                                         const std::vector<int64_t>& ids);

}  // namespace firn
