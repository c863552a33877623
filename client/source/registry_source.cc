#include "client/source/registry_source.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "client/source/list_gate.h"
#include "client/source/list_source.h"
#include "common/base/cat.h"
#include "common/base/quote.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/meta_watch.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/control_loop.h"
#include "registry/servers/directory.h"

namespace firn {
namespace {

constexpr std::string_view kListScheme = "list://";
constexpr std::string_view kDirScheme = "dir://";
constexpr std::string_view kZkScheme = "zk://";

// Returns whether the text names a registry, without opening it.
Status CheckPlace(std::string_view servers) {
  if (servers.starts_with(kZkScheme)) {
    return ParseZkPlace(servers.substr(kZkScheme.size())).status();
  }
  if (servers.starts_with(kDirScheme)) {
    return ParseDirPlace(servers.substr(kDirScheme.size())).status();
  }
  return Invalid(Quoted(servers) +
                 " is neither zk://host:port,.../firn/<cluster>, dir:///path nor " +
                 "list://host:port,...");
}

// Returns the process's start time and number; "" if the node does not contain them.
std::string IncarnationOf(const Provider& provider) {
  if (provider.since == WallMs{} && provider.pid == 0) return {};
  return Cat(provider.since.ms(), "-", provider.pid);
}

KnownServer ServerOf(const DirectoryEntry& entry) {
  return {.address = entry.provider.address,
          .rack = entry.provider.rack,
          .weight = entry.configurator.weight,
          .disabled = entry.configurator.disabled,
          .phase = entry.report.phase,
          .tls = entry.provider.tls,
          .incarnation = IncarnationOf(entry.provider)};
}

std::vector<KnownServer> ServersOf(const DirectorySnapshot& snapshot) {
  std::vector<KnownServer> servers;
  for (const DirectoryEntry* entry : OnePerAddress(snapshot)) {
    if (servers.size() == ServerList::kServersMax) break;
    servers.push_back(ServerOf(*entry));
  }
  return servers;
}

// Follows one registry on its own control thread.
class RegistrySource final : public ServerSource {
 public:
  RegistrySource(std::string servers, const RegistrySourceOptions& options)
      : servers_(std::move(servers)),
        open_{.auth = options.auth, .session_time = options.session_time},
        gate_(options.cache_file.empty() ? std::nullopt
                                         : std::optional(ListCache(options.cache_file, servers_)),
              options.on_event) {}
  ~RegistrySource() override { Stop(); }

  Status Start(Listener on_list) override {
    FIRN_TRY(CheckDirectory());
    FIRN_ASSIGN(auto coordinator, OpenCoordinator(servers_, open_, SystemClock(), SystemEntropy()));
    gate_.Open(std::move(on_list));
    loop_.emplace(SystemClock(), std::move(coordinator));
    Coordinator& registry = loop_->coordinator();
    registry.OnSession([this](const SessionEvent& event) { OnSession(event); });
    directory_.emplace(registry, SystemEntropy(),
                       [this](const DirectorySnapshot& snapshot) { OnSnapshot(snapshot); });
    meta_.emplace(registry, SystemEntropy(),
                  [this](const Result<ClusterMeta>& meta) { OnMeta(meta); });
    loop_->Start([this](Now now) {
      meta_->Tick(now.boot);
      directory_->Tick(now.boot);
    });
    return {};
  }

  void Stop() override {
    gate_.Close();
    if (loop_) loop_->Stop();
    meta_.reset();
    directory_.reset();
    loop_.reset();
  }

 private:
  // Does not create a directory: only servers that claim in it do.
  Status CheckDirectory() const {
    if (!servers_.starts_with(kDirScheme)) return {};
    const std::string path = servers_.substr(kDirScheme.size());
    std::error_code failure;
    if (std::filesystem::is_directory(path.substr(0, path.find('?')), failure)) return {};
    return NotFound("there is no directory " + path + " with a registry");
  }

  void OnSession(const SessionEvent& event) {
    if (event.kind == SessionEvent::Kind::kDenied) gate_.Note("the registry denies the session");
  }

  void OnSnapshot(const DirectorySnapshot& snapshot) {
    if (snapshot.skipped != skipped_) {
      for (const std::string& sentence : snapshot.skipped) gate_.Note("left out: " + sentence);
      skipped_ = snapshot.skipped;
    }
    known_ = ServersOf(snapshot);
    OfferWhenWhole();
  }

  // Waits for the root node, because a list without a cluster would be accepted for any cluster.
  // But an unreadable or unknown root node must not delay the servers without limit.
  void OnMeta(const Result<ClusterMeta>& meta) {
    if (meta.code() == Code::kNotFound) return gate_.Note("there is no cluster in the registry");
    if (meta.ok()) {
      cluster_ = {.uuid = meta->uuid, .name = {}, .layout = meta->layout};
    } else {
      gate_.Note("cannot identify the cluster, because its root node is unreadable: " +
                 meta.status().message());
      if (!cluster_) cluster_.emplace();
    }
    OfferWhenWhole();
  }

  void OfferWhenWhole() {
    if (known_ && cluster_) gate_.Offer({.servers = *known_, .cluster = *cluster_});
  }

  const std::string servers_;
  const OpenOptions open_;
  ListGate gate_;

  // Used by the control thread while it runs.
  std::optional<ControlLoop> loop_;
  std::optional<Directory> directory_;
  std::optional<MetaWatch> meta_;
  std::optional<std::vector<KnownServer>> known_;
  std::optional<ClusterIdentity> cluster_;
  std::vector<std::string> skipped_;
};

}  // namespace

SourceOpener RegistrySources(RegistrySourceOptions options) {
  return [options = std::move(options)](
             const std::string& servers) -> Result<std::unique_ptr<ServerSource>> {
    if (servers.starts_with(kListScheme)) return OpenListSource(servers);
    FIRN_TRY(CheckPlace(servers).WithContext("servers"));
    return std::unique_ptr<ServerSource>(std::make_unique<RegistrySource>(servers, options));
  };
}

}  // namespace firn
