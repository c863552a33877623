#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/cluster/nonce.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Puts right what a registry itself calls damaged (kCorrupt; a directory's files), so far as nobody
// needs what stood there: folders and the clock's node are made anew; announcements (`live` and
// provider nodes), whose makers make them again, lists of past holders and operators' words on
// servers are taken away. Machine ids' records and tags are left to those who know what they may
// have held. Under a frozen root node of this era. The paths of the nodes that it has mended.
// Blocks.
Result<std::vector<std::string>> MendNodes(BlockingCoordinator& registry, const Nonce& era);

}  // namespace firn
