#pragma once

#include "server/flags/options.h"
#include "server/front/desk/metrics.h"
#include "server/node/tag_owners.h"

namespace firn {

// Returns the setup with which a server can own tags: its advertised address and its TLS files.
// Returns an empty setup for a static machine id, because there is no registry.
OwnersSetup OwnersOf(const ServerOptions& options);

void AddMetrics(const OwnersReport& owners, front::MetricsPage& page);

}  // namespace firn
