#pragma once

#include <map>
#include <string>

#include "common/time/clock.h"
#include "registry/servers/provider.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Replaces the reports of servers in the registry by these, by address, as if the servers had just
// published them. Without a root node they cannot.
void PublishReports(MemoryTree& tree, const Clock& clock,
                    const std::map<std::string, ProviderReport>& reports);

}  // namespace firn
