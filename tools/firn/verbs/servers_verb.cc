#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "client/client.h"
#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/net/endpoint.h"
#include "common/time/clock.h"
#include "registry/dubbo/dubbo_consumers.h"
#include "registry/servers/provider.h"
#include "tools/firn/client_session.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/server_settings.h"
#include "tools/firn/table.h"
#include "tools/firn/verbs/verbs.h"

DECLARE_int32(timeout_ms);
DECLARE_int32(attempt_ms);
DECLARE_bool(force);

DEFINE_bool(consumers, false, "List the Dubbo consumers that are registered in ZooKeeper instead.");

namespace firn {
namespace {

using Words = std::vector<std::string>;

constexpr Milliseconds kPoll{20};
constexpr int64_t kHarmlessId = 1;  // an explain() request issues no id

// Waits for the client's list of servers. With firn:// the first list is that of the flag, so it
// waits for a second one, and returns the first if none arrives in time. kUnavailable if no server
// is known within `patience`.
Result<ClusterView> AwaitServers(const Client& client, Milliseconds patience) {
  const uint64_t lists = ChosenServers().starts_with("firn://") ? 2 : 1;
  const BootMs give_up = SystemClock().Boot() + patience;
  for (;;) {
    ClusterView view = client.cluster();
    if (!view.servers.empty() && client.counters().lists >= lists) return view;
    if (!view.servers.empty() && SystemClock().Boot() >= give_up) return view;
    if (SystemClock().Boot() >= give_up) return Unavailable("no server is known");
    SleepFor(kPoll);
  }
}

// The result of probing one server as a client does.
struct Probe {
  bool answers = false;
  double ms = 0;
  std::string why;
};

Probe Ask(const KnownServer& server, const ClusterIdentity& cluster, Milliseconds limit) {
  std::optional<TlsOptions> tls = ChosenTls();
  if (!tls && server.tls) tls.emplace();
  Client client({.servers = "list://" + server.address,
                 .cluster_uuid = cluster.uuid,
                 .tls = std::move(tls),
                 .deadline = limit,
                 .attempt_limit = limit,
                 .attempts_max = 1});
  // The first call connects and checks the cluster; the second shows the usual latency.
  Probe probe;
  for (int i = 0; i < 2; ++i) {
    CallReport report;
    const auto explained = client.Explain(kHarmlessId, {}, {.deadline = {}, .report = &report});
    if (report.attempts.empty()) return {.why = explained.status().message()};
    const CallAttempt& last = report.attempts.back();
    probe.answers = last.end == AttemptEnd::kAnswered || last.end == AttemptEnd::kRefused;
    probe.ms = static_cast<double>(last.took.count()) / 1000;
    if (!probe.answers) probe.why = last.ToString();
  }
  return probe;
}

std::string_view PhaseWord(ServerPhase phase) {
  switch (phase) {
    case ServerPhase::kNotReady:
      return "not ready";
    case ServerPhase::kReady:
      return "serving";
    case ServerPhase::kOffline:
    case ServerPhase::kDraining:
      return "draining";
  }
  return "unknown";
}

// Returns false for list://, which contains no racks.
bool RacksAreKnown() { return !ChosenServers().starts_with("list://"); }

void AddServer(const KnownServer& server, const Probe& probe, Table& table, Output& output) {
  // Clients treat a weight of 0 like offline.
  const bool out = server.disabled || server.weight <= 0;
  const bool wanted = !out && server.phase == ServerPhase::kReady;
  output.wrong |= !probe.answers || server.phase == ServerPhase::kNotReady;
  char ms[32] = "-";
  if (probe.answers) std::snprintf(ms, sizeof ms, "%.2f ms", probe.ms);
  table.Add({server.address, RacksAreKnown() ? std::to_string(server.rack) : "-",
             std::to_string(server.weight), server.disabled ? "offline" : "online",
             std::string(PhaseWord(server.phase)), probe.answers ? "answers" : "SILENT", ms,
             wanted && probe.answers ? "yes" : "no"});
  Json json{{"address", server.address},  {"weight", server.weight},
            {"offline", server.disabled}, {"phase", PhaseWord(server.phase)},
            {"answers", probe.answers},   {"asked", wanted && probe.answers}};
  if (RacksAreKnown()) json["rack"] = server.rack;
  if (probe.answers) json["latency_ms"] = probe.ms;
  if (!probe.answers) json["why"] = probe.why;
  output.json["servers"].push_back(std::move(json));
}

Result<Output> RunConsumers() {
  FIRN_ASSIGN(RegistrySession session, RegistrySession::OpenEnsemble());
  FIRN_ASSIGN(const std::vector<DubboConsumer> consumers, ReadDubboConsumers(session.registry()));
  Output output;
  output.json["consumers"] = DubboConsumersJson(consumers);
  Table table({"INTERFACE", "HOST", "APPLICATION", "PID", "DUBBO"});
  for (const DubboConsumer& one : consumers) {
    table.Add({one.interface, one.host, one.application, one.pid, one.version});
  }
  output.text = table.Text();
  return output;
}

Result<Output> RunServers(const Words& words) {
  if (!words.empty()) return Invalid("unknown command '" + words.front() + "'");
  if (FLAGS_consumers) return RunConsumers();
  FIRN_ASSIGN(const auto client, OpenClient());
  FIRN_ASSIGN(const ClusterView view, AwaitServers(*client, Milliseconds(FLAGS_timeout_ms)));
  Output output;
  output.json["cluster"] = view.cluster.uuid;
  output.json["layout"] = view.cluster.layout;
  output.json["servers"] = Json::array();
  Table table({"ADDRESS", "RACK", "WEIGHT", "OPERATOR", "PHASE", "HEALTH", "LATENCY", "ASKED"});
  std::string faults;
  for (const SeenServer& server : view.servers) {
    const Probe probe = Ask(server.known, view.cluster, Milliseconds(FLAGS_attempt_ms));
    AddServer(server.known, probe, table, output);
    if (!probe.answers) faults += "WRONG: " + probe.why + "\n";
  }
  output.text = table.Text() + faults;
  return output;
}

// --- settings of the operator --------------------------------------------------------------------

template <typename Change>
Result<Output> Say(const std::string& address, bool force, Change change) {
  FIRN_ASSIGN(const Endpoint endpoint, Endpoint::Parse(address));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  ServerSettings words(session.registry());
  FIRN_ASSIGN(const bool known, words.Knows(endpoint.ToString()));
  if (!known && !force) {
    return NotFound("no server is registered at " + endpoint.ToString() + "; `" +
                    PrintCommand(PrintedCommand::kServers) +
                    "` lists them, --force stores the setting anyway");
  }
  FIRN_ASSIGN(const Configurator word, words.Edit(endpoint.ToString(), change));
  return Output{.json = Json{{"address", endpoint.ToString()},
                             {"offline", word.disabled},
                             {"weight", word.weight}},
                .text = Cat(endpoint.ToString(), " is ", (word.disabled ? "offline" : "online"),
                            ", weight ", word.weight, "\n")};
}

Result<Output> RunSwitch(const Words& words, bool offline) {
  if (words.size() != 1) {
    return Invalid("name one server as host:port, as in `" +
                   PrintCommand(PrintedCommand::kServers) + "`");
  }
  return Say(words.front(), FLAGS_force,
             [offline](Configurator& word) { word.disabled = offline; });
}

Result<Output> RunWeight(const Words& words) {
  if (words.size() != 2) return Invalid("weight requires a server and a number");
  const auto weight = ParseNumberWithin<int>(words[1], 0, Configurator::kWeightMax);
  if (!weight) return Invalid(Cat("the weight must be 0 to ", Configurator::kWeightMax));
  return Say(words[0], FLAGS_force, [weight](Configurator& word) { word.weight = *weight; });
}

}  // namespace

Verb ServersVerb() {
  Verb offline{.name = "offline",
               .arguments = "ADDRESS",
               .summary = "makes clients avoid a server",
               .flags = {FIRN_REGISTRY_FLAGS, "force"}};
  offline.run = [](const Words& words) { return RunSwitch(words, true); };
  Verb online{.name = "online",
              .arguments = "ADDRESS",
              .summary = "lets clients use a server again",
              .flags = {FIRN_REGISTRY_FLAGS, "force"}};
  online.run = [](const Words& words) { return RunSwitch(words, false); };
  Verb weight{.name = "weight",
              .arguments = "ADDRESS N",
              .summary = "sets a server's share of calls relative to others; default 100, 0: none",
              .flags = {FIRN_REGISTRY_FLAGS, "force"}};
  weight.run = RunWeight;
  return {.name = "servers",
          .summary = "lists the servers as clients see them, and probes each one",
          .details =
              "Exit code 1 if a server does not answer or is not ready. With --servers=firn://...\n"
              "or list://... it needs no registry.\n",
          .flags = {"servers", "consumers", "tls_ca", "tls_cert", "tls_key", "tls_name",
                    "deadline_ms", "attempt_ms", FIRN_REGISTRY_FLAGS},
          .run = RunServers,
          .below = {std::move(offline), std::move(online), std::move(weight)}};
}

}  // namespace firn
