#include "server/open_node.h"

#include <charconv>
#include <utility>

#include "common/rack_split.h"
#include "registry/absent_coordinator.h"
#include "registry/claim/posix_state_folder.h"
#include "server/join_cluster.h"

namespace firn {
namespace {

// A machine id that is the operator's promise: there is no registry to ask.
Result<std::unique_ptr<IssuingNode>> OpenStatic(const NodePlace& place, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy,
                                                std::unique_ptr<StateFolder> folder) {
  const Layout layout = place.layout.value_or(Layout::Firn());
  FIRN_ASSIGN(const MachineId machine, ParseStaticRegistry(place.registry, layout));
  options.claim.layout = layout;
  options.cluster_uuid = kStaticClusterUuid;
  options.given = StaticKeeperOptions{
      .layout = layout, .machine = machine, .first_start = place.static_first_start};
  return std::make_unique<IssuingNode>(options, clock, entropy,
                                       std::make_unique<AbsentCoordinator>(), std::move(folder));
}

}  // namespace

Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout) {
  const std::string_view digits = registry.substr(kStaticRegistry.size());
  uint32_t id = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), id);
  if (error != std::errc() || end != digits.end() || id >= layout.machines()) {
    return Invalid("static: needs a machine id from 0 to " + std::to_string(layout.machines() - 1));
  }
  return MachineId(id);
}

Result<std::unique_ptr<IssuingNode>> OpenNode(const NodePlace& place, const OwnerName& owner,
                                              IssuingNodeOptions options, const Clock& clock,
                                              Entropy& entropy) {
  options.claim.session_timeout = place.session_timeout;
  FIRN_ASSIGN(auto folder, PosixStateFolder::Open(place.state_dir, owner.file_stem()));
  ClaimantIdentity& self = options.claim.identity;
  self.owner = owner.TextIn(folder->grant_identity(), self.host);
  // A directory's times are those of this very host, and agree with whatever its clock says.
  options.id_clock.registry_has_clock = place.registry.starts_with("zk:");
  options.id_clock.registry_skew_max = options.claim.skew_max;
  if (place.registry.starts_with(kStaticRegistry)) {
    return OpenStatic(place, std::move(options), clock, entropy, std::move(folder));
  }
  const std::optional<uint32_t> worker = options.claim.worker;
  FIRN_ASSIGN(JoinedCluster cluster, JoinCluster({.registry = place.registry,
                                                  .credentials = place.credentials,
                                                  .session_timeout = place.session_timeout,
                                                  .layout = place.layout,
                                                  .workers_min = worker ? *worker + 1 : 0},
                                                 *folder, clock, entropy));
  // A guess must not refuse what the cluster has: then its keeper finds out.
  if (cluster.known) FIRN_TRY(cluster.split.Join(worker.value_or(0), options.claim.rack).status());
  options.claim.layout = cluster.layout;
  options.split = cluster.split;
  options.cluster_uuid = cluster.uuid;
  return std::make_unique<IssuingNode>(options, clock, entropy, std::move(cluster.coordinator),
                                       std::move(folder));
}

}  // namespace firn
