#pragma once

#include <cstdint>

#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

struct UpgradeReport {
  int64_t from = 0;  // the cluster's previous format
  int64_t to = 0;    // its new format; equal to `from`: nothing was done
};

// Raises the cluster's format to `to`, which all its programs must support. Afterwards newer
// programs may write data that older ones would misread, and older ones cannot claim any more.
// kConflict names every server and holder that does not support it, or whose node cannot be read.
//
// A program that was disconnected meanwhile is harmless. Its claim belongs to the previous root
// node, so it is never renewed, and a new claim is refused. All other claims end as after any
// change of the root node: their holders issue up to the bound, then claim again. Blocks.
Result<UpgradeReport> UpgradeCluster(BlockingCoordinator& registry,
                                     int64_t to = ClusterMeta::kFormat);

}  // namespace firn
