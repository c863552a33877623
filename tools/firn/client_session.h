#pragma once

#include <memory>
#include <optional>
#include <string>

#include "client/client.h"
#include "common/base/status.h"

namespace firn {

// Whom --servers names, or else --registry where that is given, or else the environment's
// FIRN_SERVERS.
std::string ChosenServers();

// Whether --servers, or the environment's FIRN_SERVERS where no --registry is given, names them.
bool ServersAreNamed();

// How servers are spoken to, by the flags of TLS; nothing when none is given.
std::optional<TlsOptions> ChosenTls();

// A client of their cluster. `options` says the rest; the flags decide about where, credentials,
// TLS and deadlines.
Result<std::unique_ptr<Client>> OpenClient(ClientOptions options = {});

// `why` a call failed, with a way out where it may be that no server runs.
Status WithWayOut(const Status& why);

// The flags that OpenClient reads, for a verb's list.
#define FIRN_CLIENT_FLAGS                                                                   \
  "servers", "registry", "registry_auth_file", "tls_ca", "tls_cert", "tls_key", "tls_name", \
      "deadline_ms", "attempt_ms"

}  // namespace firn
