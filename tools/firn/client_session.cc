#include "tools/firn/client_session.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "client/source/registry_source.h"
#include "tools/firn/registry_session.h"

DEFINE_string(servers, "",
              "whom to ask: firn://host:port,... (any servers; they tell of the others), "
              "list://host:port,... (just these), or as --registry; empty: the environment's "
              "FIRN_SERVERS, or else --registry");
DEFINE_int32(deadline_ms, 5000, "of a whole call, finding the servers included");
DEFINE_int32(attempt_ms, 1000, "of one server's answer");

namespace firn {

std::string ChosenServers() {
  if (!FLAGS_servers.empty()) return FLAGS_servers;
  const bool registry_is_named = !gflags::GetCommandLineFlagInfoOrDie("registry").is_default;
  const char* const found = registry_is_named ? nullptr : std::getenv("FIRN_SERVERS");
  return found == nullptr || *found == '\0' ? ChosenRegistry() : found;
}

Result<std::unique_ptr<Client>> OpenClient(ClientOptions options) {
  FIRN_ASSIGN(const std::string auth, ChosenCredentials());
  options.servers = ChosenServers();
  options.open_source = RegistrySources({.auth = auth});
  options.deadline = Milliseconds(FLAGS_deadline_ms);
  options.attempt_limit = Milliseconds(std::min(FLAGS_attempt_ms, FLAGS_deadline_ms));
  auto client = std::make_unique<Client>(std::move(options));
  FIRN_TRY(client->status());
  return client;
}

}  // namespace firn
