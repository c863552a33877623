#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/client.h"
#include "common/base/status.h"

namespace firn {

// Returns the flag --servers if set; otherwise FIRN_SERVERS from the environment, unless the flag
// --registry is set; otherwise the registry.
std::string ChosenServers();

// Returns whether --servers or, unless --registry is given, FIRN_SERVERS is set.
bool ServersAreNamed();

// Returns the TLS options of the flags, or nullopt if no TLS flag is set.
std::optional<TlsOptions> ChosenTls();

// Returns a client of the chosen servers. The flags override the servers, credentials, TLS and
// deadlines of `options`.
Result<std::unique_ptr<Client>> OpenClient(ClientOptions options = {});

// Returns `why`. If the cause may be that no server runs, appends a hint to start one.
Status WithHint(const Status& why);

// The flags that OpenClient reads, for a verb's list.
#define FIRN_CLIENT_FLAGS                                                                   \
  "servers", "registry", "registry_auth_file", "tls_ca", "tls_cert", "tls_key", "tls_name", \
      "deadline_ms", "attempt_ms"

}  // namespace firn
