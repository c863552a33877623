#pragma once

#include <string>
#include <vector>

#include "registry/operate/audit.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Reads the cluster's tags and adds their faults to the audit: nodes that are not tags, or whose
// version cannot be guarded; ledgers below the value that a server has seen; numbers dated later
// than `now`; obfuscated tags whose ids outgrow their width within a year (within ten: a note).
// Fails if the registry does not answer. Blocks.
//
// The providers must be read before: servers continue meanwhile, and a ledger only rises.
Status AuditTags(BlockingCoordinator& registry, WallMs now, Audit& audit);

}  // namespace firn
