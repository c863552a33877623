#pragma once

#include <string>
#include <vector>

#include "registry/operate/audit.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Reads the cluster's tags and adds to the audit what is wrong with them: nodes that are no tags,
// or rest where nothing can be guarded, and ledgers that lie below what a server reports to have
// seen, and numbers dated later than `now`. Fails when the registry does not answer. Blocks.
//
// The providers must be the older reading: servers go on meanwhile, and a ledger only rises.
Status AuditTags(BlockingCoordinator& registry, WallMs now, Audit& audit);

}  // namespace firn
