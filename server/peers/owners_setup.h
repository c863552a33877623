#pragma once

#include "server/flags/options.h"
#include "server/front/desk/metrics.h"
#include "server/node/tag_owners.h"

namespace firn {

// How a server takes part in owning tags: at its advertised address, and with its own TLS files.
// Without a registry it takes no part.
OwnersSetup OwnersOf(const ServerOptions& options);

void AddMetrics(const OwnersReport& owners, front::MetricsPage& page);

}  // namespace firn
