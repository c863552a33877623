#pragma once

#include <cstdint>

#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

struct UpgradeReport {
  int64_t from = 0;  // what the cluster used until now
  int64_t to = 0;    // what it uses from now on; equal: nothing was done
};

// Has the cluster use format `to`, which its programs must all speak: from then on newer ones may
// write what older ones would misread, and older ones claim nothing more. kConflict names every
// server and every holder of a machine id that speaks less, and every one that cannot be read.
//
// One that was away meanwhile is no danger: its claim is of the root node before, so it is never
// renewed, and it is refused when it claims again. Claims of all others end as after any change of
// the root node: served to their bound, and claimed anew. Blocks.
Result<UpgradeReport> UpgradeCluster(BlockingCoordinator& registry,
                                     int64_t to = ClusterMeta::kFormat);

}  // namespace firn
