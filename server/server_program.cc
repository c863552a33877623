#include "server/server_program.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "common/net/ip_address.h"
#include "registry/state/this_boot.h"
#include "server/configured_stores.h"
#include "server/node/open_node.h"
#include "server/peers/owners_setup.h"
#include "server/plugins/built_in.h"

namespace firn {
namespace {

constexpr Milliseconds kWithdrawPatience{1000};
constexpr Milliseconds kPoll{10};
constexpr Milliseconds kConsumersLeave{10'000};
constexpr Milliseconds kRefreshRightsEvery{1'000};
// How long the provider node shows a loss of records, like the alert FirnHistoryLost.
constexpr Milliseconds kHistoryLostFor{600'000};

// Takes the same time for any wrong secret of the same length.
bool IsSameSecret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

front::TokenCheck CheckOf(const std::optional<TinyidTokens>& allowed) {
  if (!allowed) return nullptr;
  return [tokens = *allowed](std::string_view token, std::string_view tag) {
    const std::set<std::string, std::less<>>* permitted = nullptr;
    for (const auto& [known, tags] : tokens) {
      if (IsSameSecret(known, token)) permitted = &tags;
    }
    return permitted != nullptr && permitted->contains(tag);
  };
}

Provider ProviderOf(const ServerOptions& options, const Clock& clock) {
  return {.address = options.advertise.ToString(),
          .application = options.application,
          .rack = options.node.claim.rack,
          .tls = options.listen.tls.has_value(),
          .since = clock.Wall(),
          .pid = options.node.claim.identity.pid,
          .build = ServerBuild()};
}

// The console's URL, with the advertised address if the admin port listens on all addresses.
std::string AdminUrlOf(const ServerOptions& options, uint16_t port) {
  const front::FrontDoorOptions& door = options.admin ? *options.admin : options.listen;
  const Endpoint at{.host = IsAnyAddress(door.host) ? options.advertise.host : door.host,
                    .port = port};
  return Cat(door.tls ? "https://" : "http://", at.ToString(), "/");
}

// The prefix of files in the state folder; empty if there is no registry with settings.
std::string KeptStem(const ServerOptions& options) {
  if (options.place.registry.starts_with("static:")) return {};
  return options.place.state_dir + "/" + options.owner.file_stem();
}

// This server's entry in the list if there is no registry; else nullopt.
std::optional<front::ListedServer> Alone(const ServerOptions& options) {
  if (!options.place.registry.starts_with("static:")) return std::nullopt;
  return front::ListedServer{.address = options.advertise.ToString(),
                             .rack = options.node.claim.rack,
                             .tls = options.listen.tls.has_value()};
}

}  // namespace

Result<std::unique_ptr<ServerProgram>> ServerProgram::Open(ServerOptions options,
                                                           const Clock& clock, Entropy& entropy) {
  // Locks the state folder: until then, another process may still write the lease file there.
  FIRN_ASSIGN(NodeParts parts, OpenParts(options.place, options.owner, options.node.claim));
  LeaseFile::LoadInto(KeptStem(options), options.node.claim);
  options.node.owners = OwnersOf(options);
  FIRN_ASSIGN(auto node, OpenNodeOn(std::move(parts), options.place, options.owner, options.node,
                                    clock, entropy));
  std::unique_ptr<ServerProgram> server(
      new ServerProgram(std::move(options), clock, entropy, std::move(node)));
  FIRN_TRY(server->AddPlugins());
  FIRN_TRY(server->AddDubbo(entropy));
  FIRN_TRY(AddStores(server->options_.stores, server->segments(), clock, entropy));
  return server;
}

ServerProgram::ServerProgram(ServerOptions options, const Clock& clock, Entropy& entropy,
                             std::unique_ptr<IssuingNode> node)
    : options_(std::move(options)),
      clock_(clock),
      node_(std::move(node)),
      operators_(node_->loop().coordinator(), entropy, options_.advertise.ToString()),
      listing_(node_->loop().coordinator(), options_.application, Alone(options_), clock),
      root_(node_->loop().coordinator(), entropy, KeptStem(options_)),
      view_(options_, *node_, operators_, listing_, root_, clock),
      publisher_(node_->loop().coordinator(), entropy, ProviderOf(options_, clock)),
      pace_(clock.Boot()),
      logged_(clock.Boot()),
      pace_log_(clock.Boot(),
                [this](BootMs now, bool ends) {
                  const front::Totals totals = front_.totals();
                  const front::DeskCounters::Sums sums = front_.sums();
                  return ends ? logged_.Read(totals, sums, now) : logged_.Peek(totals, sums, now);
                }),
      pace_publisher_(node_->loop().coordinator(), entropy, options_.advertise.ToString(),
                      [this](BootMs now) { return Pace(now); }),
      cluster_({.registry = options_.place.registry,
                .credentials = options_.place.credentials,
                .auth_file = options_.credentials_file},
               {}, clock, entropy),
      lease_desk_(OpenLeases(entropy)),
      front_(FrontOptions(), node_->issuer(), view_, view_, clock) {
  view_.SetLeases(*lease_desk_);
}

ServerProgram::~ServerProgram() {
  if (dubbo_ != nullptr) dubbo_->Stop();
  front_.Shutdown(Milliseconds(0));
  node_->Stop();
}

front::ServerFrontOptions ServerProgram::FrontOptions() {
  const auto log = [](const std::string& line) { LogWarning("connection_refused") << line; };
  front::FrontDoorOptions listen = options_.listen;
  listen.log = log;
  std::optional<front::FrontDoorOptions> admin = options_.admin;
  if (admin) admin->log = log;
  return {.listen = std::move(listen),
          .admin = std::move(admin),
          .admin_hosts = options_.admin_hosts,
          .http_hosts = options_.http_hosts,
          .default_tag = options_.node.default_tag,
          .rights_file = options_.rights_file,
          .redis = options_.redis,
          .redis_incr_64bit = options_.redis_incr_64bit,
          .redis_auth_file = options_.redis_auth_file,
          .tinyid_tokens = CheckOf(options_.tinyid_tokens),
          .dubbo = options_.dubbo,
          .more_metrics = [this](front::MetricsPage& page) { AddMetrics(page); },
          .history = [this] { return FormatHistory(pace_log_.Read(clock_.Boot())); },
          .take_owned = [this](const PeerTake& take) { return node_->owners().TakeFor(take); },
          .cluster = &cluster_,
          .leases = lease_desk_.get()};
}

ServerPace ServerProgram::Pace(BootMs now) {
  const front::Totals totals = front_.totals();
  ServerPace pace = pace_.Read(totals, front_.sums(), now);
  pace.history = pace_log_.Read(now);
  totals.recognised.ForEach([&](front::ProtocolKind kind, uint64_t) {
    pace.connections.emplace(front::ProtocolName(kind), totals.open(kind));
  });
  pace.console = AdminUrlOf(options_, front_.admin_port());
  return pace;
}

void ServerProgram::AddMetrics(front::MetricsPage& page) const {
  view_.AddMetrics(page);
  firn::AddMetrics(node_->owners().report(), page);
  if (dubbo_ != nullptr) {
    page.Gauge("firn_dubbo_registered", "1: this server's nodes for Dubbo's consumers exist.",
               dubbo_->registered() ? 1 : 0);
  }
  for (const TagRate& rate : rates_->Read(clock_.Boot())) {
    page.Gauge("firn_ids_per_second",
               "Ids issued per second for tags with the plugin `rate`, averaged over some seconds.",
               rate.ids_per_second, {{"tag", rate.tag}});
  }
  if (history_ == nullptr) return;
  const HistoryCounts counts = history_->counts();
  const char* const help = "Runs of ids for the history, by outcome.";
  const auto add = [&](const char* outcome, int64_t runs) {
    page.Counter("firn_history_runs_total", help, static_cast<uint64_t>(runs),
                 {{"outcome", outcome}});
  };
  add("written", counts.written);
  add("dropped", counts.dropped);
  add("lost", counts.lost);
}

// With an assigned machine id there is no registry, from which others could be leased.
std::unique_ptr<LeaseDesk> ServerProgram::OpenLeases(Entropy& entropy) {
  const std::string stem = KeptStem(options_);
  if (stem.empty()) return std::make_unique<NoLeases>("static: has no registry to lease from");
  auto opened = std::make_unique<Leases>(LeaseTableOptions{.claim = node_->claim_options(),
                                                           .split = node_->split(),
                                                           .address = options_.advertise.ToString(),
                                                           .leases_max = options_.leases_max,
                                                           .boot = BootId().value_or("")},
                                         node_->loop(), entropy, stem);
  leases_ = opened.get();
  return opened;
}

void ServerProgram::TickLeases(Now now) {
  const IssuingNodeStatus status = node_->status();
  LeaseTable::Server server = LeaseTable::ServerOf(status.claim, node_->claim_checked());
  if (view_.phase() == ServerPhase::kDraining) server.why_not = LeaseTable::kStopping;
  leases_->Tick({now, node_->id_time()}, std::move(server));
}

Status ServerProgram::AddPlugins() {
  PluginParts parts{.clock = clock_, .rates = rates_};
  if (!options_.key_dir.empty()) parts.keys = std::make_shared<KeyRing>(options_.key_dir);
  if (!options_.history.path.empty()) {
    const auto log = [](const std::string& line) { LogWarning("history_incomplete") << line; };
    history_ =
        std::make_shared<History>(clock_, History::Options{.file = options_.history, .log = log});
    FIRN_TRY(history_->Start().WithContext("--history_file"));
    parts.history = history_;
  }
  return AddBuiltInPlugins(parts, node_->catalogue());
}

Status ServerProgram::AddDubbo(Entropy& entropy) {
  if (!options_.dubbo) return {};
  FIRN_ASSIGN(dubbo_, DubboListing::Open(options_, clock_, entropy));
  return {};
}

// A server that is offline or stopping is deleted from the list and announces that on its
// connections. A server that cannot issue for another reason is only deleted: consumers of Dubbo
// 2.7 never forget that a connection was read-only.
void ServerProgram::StartDubbo() {
  if (dubbo_ == nullptr) return;
  dubbo_->Start([this]() -> std::optional<int> {
    const ServerPhase phase = view_.announced();
    front_.SetDubboReadOnly(phase == ServerPhase::kOffline || phase == ServerPhase::kDraining);
    const int weight = operators_.weight();
    if (phase != ServerPhase::kReady || weight <= 0) return std::nullopt;
    return weight;
  });
}

Status ServerProgram::Start() {
  FIRN_TRY(front_.Start());
  FIRN_TRY(node_->Start({.tick = [this](Now now) { Publish(now); },
                         .session =
                             [this](const SessionEvent& event) {
                               if (leases_ != nullptr) leases_->OnSession(event);
                             },
                         .tag_served = [this](const TagDefinition& tag) { view_.OnTag(tag); },
                         .tag_deleted = [this](const std::string& tag) { view_.OnTagDeleted(tag); },
                         .waiting = [this](const std::string& tag) { front_.WakeParked(tag); }}));
  StartDubbo();
  LogInfo("listening").With("port", front_.port()).With("admin_port", front_.admin_port())
      << "listening on " << options_.listen.host << ":" << front_.port() << ", admin on "
      << (options_.admin ? options_.admin->host : options_.listen.host) << ":"
      << front_.admin_port() << (options_.listen.unix_path.empty() ? "" : ", Unix socket ")
      << options_.listen.unix_path << ", registry " << options_.place.registry;
  const bool asks_who =
      options_.admin && options_.admin->tls && !options_.admin->tls->client_ca.empty();
  if (!options_.admin_is_local && !asks_who) {
    LogWarning("admin_port_open")
        << "other hosts can reach the admin port, which requires no authentication: anyone who can "
           "reach it can take this server offline; see --admin_listen and --admin_tls_client_ca";
  }
  return {};
}

void ServerProgram::RefreshRights(BootMs now) {
  if (now < refresh_rights_at_) return;
  refresh_rights_at_ = now + kRefreshRightsEvery;
  const Status looked = front_.RefreshRights();
  if (looked.ok()) return;
  LogError("reload_failed").With("file", options_.rights_file)
      << looked << "; the rights read before stay in force";
}

void ServerProgram::Publish(Now now) {
  control_turned_ms_.store(now.boot.ms(), std::memory_order_relaxed);
  RefreshRights(now.boot);
  operators_.Tick(now.boot);
  // A new phase is written at once; the rest once per interval.
  const ServerPhase phase = view_.announced();
  root_.Tick(now.boot, node_->status().claim.uuid);
  listing_.Tick(now, node_->status().claim.uuid, phase);
  front_.Reserve(node_->owners().has_tags() ? listing_.connections() : 0);
  if (phase != told_phase_ || now.boot - told_at_ >= ProviderPublisher::kReportInterval) {
    publisher_.Report(Report(now.boot));
    told_phase_ = phase;
    told_at_ = now.boot;
  }
  publisher_.Tick(now.boot);
  pace_log_.Tick(now.boot);
  view_.SetOverloaded(logged_.overloaded());
  // Activity is requested only of servers on the list.
  if (publisher_.published()) pace_publisher_.Tick(now.boot);
  LogRestoreCommand(now.boot);
  if (leases_ != nullptr) TickLeases(now);
}

ProviderReport ServerProgram::Report(BootMs now) {
  ProviderReport report = view_.ForProviders();
  report.admin = AdminUrlOf(options_, front_.admin_port());
  for (const auto& [door, expiry] : front_.certificates()) {
    report.certificates.emplace(door, expiry.certificate);
    if (expiry.client_ca) report.certificates.emplace(Cat(door, " clients"), *expiry.client_ca);
  }
  const HistoryCounts counts = history_ != nullptr ? history_->counts() : HistoryCounts();
  const int64_t missing = counts.dropped + counts.lost;
  if (missing > std::exchange(history_missing_, missing)) history_lost_at_ = now;
  report.history_lost = history_lost_at_ && now - *history_lost_at_ < kHistoryLostFor;
  return report;
}

void ServerProgram::LogRestoreCommand(BootMs now) {
  const bool unfinished = view_.RestoreIsUnfinished();
  if (std::exchange(restore_unfinished_, unfinished) != unfinished) restore_notice_ = {};
  const std::string command =
      restore_notice_.Take(now, view_.RequiresRestore(), [this] { return view_.RepairCommand(); });
  if (command.empty()) return;
  LogError("restore_required").With("command", command)
      << "the cluster's data must be restored: run this where its documents are; elsewhere, "
         "replace a server's state folder by a file with /v1/knowledge of its admin port\n  "
      << command;
}

void ServerProgram::Withdraw() {
  // Used on the control thread only. Shared, because the answer may come after the timeout.
  auto done = std::make_shared<bool>(false);
  node_->loop().Post(
      [this, done] { publisher_.Withdraw([done](const Status&) { *done = true; }); });
  const BootMs give_up = clock_.Boot() + kWithdrawPatience;
  bool is_gone = false;
  while (!is_gone && clock_.Boot() < give_up) {
    SleepFor(kPoll);
    node_->loop().Run([&] { is_gone = *done; });
  }
  if (is_gone) return;
  LogWarning("withdrawal_unconfirmed")
      << "the registry has not confirmed that this server is off the list";
}

// Waits for consumers, which get the new list from ZooKeeper and then close their connections.
void ServerProgram::LetConsumersLeave() const {
  if (dubbo_ == nullptr) return;
  Await(kConsumersLeave, [this] {
    const front::Totals totals = front_.totals();
    return totals.recognised[front::ProtocolKind::kDubbo] ==
           totals.ended[front::ProtocolKind::kDubbo];
  });
}

void ServerProgram::Await(Milliseconds patience, const std::function<bool()>& done) const {
  const BootMs give_up = clock_.Boot() + patience;
  while (!done() && clock_.Boot() < give_up) SleepFor(kPoll);
}

BootMs ServerProgram::OldestTurn(BootMs now) const {
  const int64_t control = control_turned_ms_.load(std::memory_order_relaxed);
  return std::min(control > 0 ? BootMs(control) : now, front_.OldestTurn(now));
}

size_t ServerProgram::connection_bytes() const {
  constexpr size_t kBesideBuffers = 16 * 1024;  // for TLS, which needs most
  const front::Totals totals = front_.totals();
  return static_cast<size_t>(totals.buffer_bytes + totals.open() * kBesideBuffers);
}

std::string ServerProgram::Readiness() const {
  const ServerPhase phase = view_.phase();
  const std::string why = phase == ServerPhase::kNotReady ? view_.why_not_ready() : "";
  return Cat(PhaseName(phase), why.empty() ? "" : ": ", why);
}

void ServerProgram::Drain() {
  LogInfo("draining") << "draining";
  view_.Drain();
  Withdraw();
  node_->HandOver();
  if (dubbo_ != nullptr) dubbo_->Withdraw();
  SleepFor(options_.drain_notice);
  // Meanwhile, other servers take numbers of tags with buffer = owner from this one.
  Await(options_.drain_patience, [this] { return !node_->owners().awaits_successor(); });
  LetConsumersLeave();
  node_->issuer().Drain();
  // The server closes connections later: only a refusal proves that it has not served a call.
  Await(options_.drain_refuse, [this] { return front_.totals().open() == 0; });
  front_.Shutdown(options_.drain_patience);
  cluster_.Stop();
  if (dubbo_ != nullptr) dubbo_->Stop();
  if (leases_ != nullptr) leases_->StopWithin(node_->claim_options().release_wait);
  node_->Stop();
  if (history_ != nullptr) history_->Stop();
  LogInfo("drained") << "drained";
}

}  // namespace firn
