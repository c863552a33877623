#include "tools/firn/client_session.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "client/source/registry_source.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"

DEFINE_string(servers, "",
              "Servers to use: firn://host:port,... (any servers; they name the others), "
              "list://host:port,... (exactly these), or a registry. Empty: the environment's "
              "FIRN_SERVERS, otherwise --registry.");
DEFINE_int32(deadline_ms, 5000,
             "Maximum time of a whole call, discovery of servers included, in milliseconds.");
DEFINE_int32(attempt_ms, 1000, "Maximum time to wait for one server's answer, in milliseconds.");
DEFINE_string(tls_ca, "",
              "PEM file with the authorities that servers' certificates must come from; connects "
              "by TLS. Empty: TLS only to servers that the list marks so, verified by this "
              "machine's authorities.");
DEFINE_string(tls_cert, "",
              "PEM file with the certificate to present to servers that require one.");
DEFINE_string(tls_key, "", "PEM file with the private key of --tls_cert.");
DEFINE_string(tls_name, "",
              "Name that servers' certificates must contain. Empty: the host of each server's "
              "address.");

namespace firn {

std::optional<TlsOptions> ChosenTls() {
  if (FLAGS_tls_ca.empty() && FLAGS_tls_cert.empty() && FLAGS_tls_key.empty() &&
      FLAGS_tls_name.empty()) {
    return std::nullopt;
  }
  return TlsOptions{
      .ca = FLAGS_tls_ca, .cert = FLAGS_tls_cert, .key = FLAGS_tls_key, .name = FLAGS_tls_name};
}

namespace {

std::string NamedServers() {
  if (!FLAGS_servers.empty()) return FLAGS_servers;
  const bool registry_is_said = IsFlagSet("registry");
  const char* const found = registry_is_said ? nullptr : std::getenv("FIRN_SERVERS");
  return found == nullptr ? "" : found;
}

}  // namespace

bool ServersAreNamed() { return !NamedServers().empty(); }

std::string ChosenServers() { return ServersAreNamed() ? NamedServers() : ChosenRegistry(); }

Status WithHint(const Status& why) {
  if (why.code() != Code::kUnavailable && why.code() != Code::kNotFound) return why;
  return {why.code(), why.message() +
                          ". Is a server running? `firn-server` starts one on this host; use it "
                          "with --servers=list://127.0.0.1:7609"};
}

Result<std::unique_ptr<Client>> OpenClient(ClientOptions options) {
  FIRN_ASSIGN(const std::string auth, ChosenCredentials());
  options.servers = ChosenServers();
  options.open_source = RegistrySources({.auth = auth});
  options.tls = ChosenTls();
  options.deadline = Milliseconds(FLAGS_deadline_ms);
  options.attempt_limit = Milliseconds(std::min(FLAGS_attempt_ms, FLAGS_deadline_ms));
  auto client = std::make_unique<Client>(std::move(options));
  FIRN_TRY(client->status());
  return client;
}

}  // namespace firn
