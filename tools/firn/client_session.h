#pragma once

#include <memory>
#include <string>

#include "client/client.h"
#include "common/base/status.h"

namespace firn {

// Whom --servers names, or else --registry where that is given, or else the environment's
// FIRN_SERVERS.
std::string ChosenServers();

// A client of their cluster. `options` says the rest; the flags decide about where, credentials and
// deadlines.
Result<std::unique_ptr<Client>> OpenClient(ClientOptions options = {});

// The flags that OpenClient reads, for a verb's list.
#define FIRN_CLIENT_FLAGS "servers", "registry", "registry_auth_file", "deadline_ms", "attempt_ms"

}  // namespace firn
