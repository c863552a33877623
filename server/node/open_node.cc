#include "server/node/open_node.h"

#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/id/rack_split.h"
#include "common/log/log.h"
#include "registry/seam/absent_coordinator.h"
#include "registry/state/file_system.h"
#include "registry/state/posix_state_folder.h"
#include "server/node/join_cluster.h"

namespace firn {
namespace {

bool IsStatic(const NodePlace& place) { return place.registry.starts_with(kStaticRegistry); }

Layout StaticLayout(const NodePlace& place) { return place.layout.value_or(Layout::Firn()); }

// Returns the prefix of a folder's files for machine id `number`, counted from 0. The prefix of the
// first one is the same as with a single machine id, so that the claim survives a change of the
// number of machine ids.
std::string StemOf(const OwnerName& owner, uint32_t number) {
  return number == 0 ? owner.file_stem() : Cat(owner.file_stem(), ".", number + 1);
}

// Returns the prefix of files that belong to all machine ids.
std::string StemIn(const NodePlace& place, const OwnerName& owner) {
  return place.state_dir + "/" + owner.file_stem();
}

// The grant of a static machine id is on disk, and only one process per host may use the machine
// id.
Result<std::unique_ptr<PosixStateFolder>> OpenState(const NodePlace& place, std::string stem) {
  StatePlace state{.folder = place.state_dir,
                   .stem = std::move(stem),
                   .grant_dir = place.grant_dir,
                   .grant_on_disk = IsStatic(place)};
  if (IsStatic(place)) {
    FIRN_ASSIGN(const MachineId id, ParseStaticRegistry(place.registry, StaticLayout(place)));
    state.only_on_host = Cat("firn-static:", id.value());
  }
  FIRN_ASSIGN(auto folder, PosixStateFolder::Open(state));
  FIRN_ASSIGN(const std::string_view foreign, ForeignFileSystemAt(place.state_dir));
  FIRN_TRY(CheckStateFileSystem(place, foreign));
  return folder;
}

// Returns the number of workers per rack that a cluster created for this node needs: twice its
// machine ids, because after a crash without a grant the old slots remain in use until their bounds
// have passed.
uint32_t WorkersFor(const NodePlace& place, std::optional<uint32_t> worker) {
  return worker ? *worker + 1 : 2 * place.machine_ids;
}

// Opens a node with a static machine id, which the operator assigns. There is no registry.
Result<std::unique_ptr<IssuingNode>> OpenStatic(const NodePlace& place, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy,
                                                std::unique_ptr<StateFolder> folder) {
  const Layout layout = StaticLayout(place);
  FIRN_ASSIGN(const MachineId machine, ParseStaticRegistry(place.registry, layout));
  options.claim.layout = layout;
  options.cluster_uuid = kStaticClusterUuid;
  options.default_strategy = place.default_strategy;
  options.given = StaticKeeperOptions{.layout = layout,
                                      .machine = machine,
                                      .first_start = place.static_first_start,
                                      .clock_ok = place.static_clock_ok,
                                      .adopt = place.static_adopt,
                                      .time_namespace = options.claim.time_namespace};
  IssuingNodeParts parts{.coordinator = std::make_unique<AbsentCoordinator>(),
                         .folder = std::move(folder)};
  return std::make_unique<IssuingNode>(options, std::move(parts), clock, entropy);
}

}  // namespace

Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout) {
  const std::string_view digits = registry.substr(kStaticRegistry.size());
  const auto id = ParseNumber<uint32_t>(digits);
  if (id.has_value() && *id < layout.machines()) return MachineId(*id);
  return Invalid(Cat("static: needs a machine id from 0 to ", layout.machines() - 1));
}

Status CheckMachineIds(const NodePlace& place, const ClaimOptions& claim) {
  const uint32_t count = place.machine_ids;
  if (count < 1 || count > kMachineIdsMax) {
    return Invalid(Cat("must be 1 to ", kMachineIdsMax));
  }
  if (count == 1) return {};
  if (IsStatic(place)) return Invalid("must be 1 with static:, which names one");
  if (claim.worker) return Invalid("must be 1 where a worker is named");
  return {};
}

Status CheckStateFileSystem(const NodePlace& place, std::string_view foreign) {
  if (foreign.empty()) return {};
  const std::string told =
      "the state folder " + place.state_dir + " lies on " + std::string(foreign);
  if (IsStatic(place)) {
    return Invalid(told + ": a machine id that is assigned by hand requires a local file system");
  }
  LogWarning("state_folder_remote").With("path", place.state_dir)
      << told << ": a start waits while it is unreachable, and the server may then get "
      << "another machine id";
  return {};
}

Result<NodeParts> OpenParts(const NodePlace& place, const OwnerName& owner,
                            const ClaimOptions& claim) {
  FIRN_TRY(CheckMachineIds(place, claim).WithContext("the number of machine ids"));
  FIRN_ASSIGN(auto folder, OpenState(place, StemOf(owner, 0)));
  NodeParts parts{.folder = std::move(folder), .kept = nullptr, .time_namespace = TimeNamespace()};
  for (uint32_t number = 1; number < place.machine_ids; ++number) {
    FIRN_ASSIGN(auto more, OpenState(place, StemOf(owner, number)));
    parts.more_folders.push_back(std::move(more));
  }
  if (!IsStatic(place)) parts.kept = std::make_unique<KeptTags>(StemIn(place, owner));
  return parts;
}

Result<std::unique_ptr<IssuingNode>> OpenNodeOn(NodeParts ground, const NodePlace& place,
                                                const OwnerName& owner, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy) {
  options.claim.time_namespace = ground.time_namespace;
  options.claim.session_timeout = place.session_timeout;
  ClaimantIdentity& self = options.claim.identity;
  self.owner = owner.TextIn(ground.folder->grant_identity().lock, self.host);
  // A directory's timestamps come from this host's clock, so they cannot confirm it.
  options.id_clock.registry_has_clock = place.registry.starts_with("zk:");
  options.claim.registry_shares_clock = place.registry.starts_with("dir:");
  options.id_clock.registry_skew_max = options.claim.skew_max;
  if (IsStatic(place)) {
    return OpenStatic(place, std::move(options), clock, entropy, std::move(ground.folder));
  }
  const std::optional<uint32_t> worker = options.claim.worker;
  FIRN_ASSIGN(JoinedCluster cluster, JoinCluster({.registry = place.registry,
                                                  .credentials = place.credentials,
                                                  .session_timeout = place.session_timeout,
                                                  .layout = place.layout,
                                                  .default_strategy = place.default_strategy,
                                                  .workers_min = WorkersFor(place, worker),
                                                  .kept_stem = StemIn(place, owner),
                                                  .claim_window = options.claim.window,
                                                  .open = std::move(ground.open)},
                                                 *ground.folder, clock, entropy));
  // A guessed split must not refuse a rack that the cluster may have. The keeper checks the rack
  // later.
  if (cluster.known) FIRN_TRY(cluster.split.Join(worker.value_or(0), options.claim.rack).status());
  options.claim.layout = cluster.layout;
  options.split = cluster.split;
  options.guessed = !cluster.known;
  options.cluster_uuid = cluster.uuid;
  options.session = cluster.session;
  IssuingNodeParts parts{.coordinator = std::move(cluster.coordinator),
                         .folder = std::move(ground.folder),
                         .kept = std::move(ground.kept)};
  for (auto& folder : ground.more_folders) {
    parts.siblings.push_back({.owner = owner.TextIn(folder->grant_identity().lock, self.host),
                              .folder = std::move(folder)});
  }
  return std::make_unique<IssuingNode>(options, std::move(parts), clock, entropy);
}

}  // namespace firn
