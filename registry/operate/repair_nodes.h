#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/cluster/nonce.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Repairs nodes that a registry reports as damaged (kCorrupt; a directory's files), if their
// contents are not needed. Folders and the clock node are emptied. Announcements (`live` and
// provider nodes), which their owners re-create, lists of past holders and operators' settings for
// servers are removed. Records of machine ids and tags are not changed: their contents matter.
// Requires a frozen root node of this era. Returns the paths of the repaired nodes.
// Blocks.
Result<std::vector<std::string>> RepairNodes(BlockingCoordinator& registry, const Nonce& era);

}  // namespace firn
