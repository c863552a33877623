#pragma once

#include <memory>

#include "client/client.h"
#include "common/base/status.h"

namespace firn {

// A client of the cluster that --servers names, or else --registry. `options` says the rest; the
// flags decide about where, credentials and deadlines.
Result<std::unique_ptr<Client>> OpenClient(ClientOptions options = {});

// The flags that OpenClient reads, for a verb's list.
#define FIRN_CLIENT_FLAGS "servers", "registry", "registry_auth_file", "deadline_ms", "attempt_ms"

}  // namespace firn
