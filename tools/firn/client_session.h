#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/client.h"
#include "common/base/status.h"

namespace firn {

// Returns --servers; otherwise FIRN_SERVERS of the environment, unless --registry is given;
// otherwise the registry.
std::string ChosenServers();

// Returns whether --servers or, unless --registry is given, FIRN_SERVERS is set.
bool ServersAreNamed();

// Returns the TLS options that the flags set, or nullopt if no TLS flag is given.
std::optional<TlsOptions> ChosenTls();

// Returns a client of the chosen servers. The flags override the servers, credentials, TLS and
// deadlines of `options`.
Result<std::unique_ptr<Client>> OpenClient(ClientOptions options = {});

// Returns `why`, with a hint to start a server if the failure may mean that none runs.
Status WithHint(const Status& why);

// The flags that OpenClient reads, for a verb's list.
#define FIRN_CLIENT_FLAGS                                                                   \
  "servers", "registry", "registry_auth_file", "tls_ca", "tls_cert", "tls_key", "tls_name", \
      "deadline_ms", "attempt_ms"

}  // namespace firn
