#pragma once

#include <string>
#include <vector>

#include "registry/audit.h"
#include "registry/blocking_coordinator.h"

namespace firn {

// Reads the cluster's tags and adds to `faults` what is wrong with them, in words: nodes that are
// no tags, and ledgers that lie below what a server reports to have seen. Fails when the registry
// does not answer. Blocks.
//
// The reports must be the older reading: servers go on meanwhile, and a ledger only rises.
Status AuditTags(BlockingCoordinator& registry, const std::vector<AuditedProvider>& providers,
                 std::vector<std::string>& faults);

}  // namespace firn
