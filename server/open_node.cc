#include "server/open_node.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "common/rack_split.h"
#include "registry/absent_coordinator.h"
#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/hint.h"
#include "registry/open_coordinator.h"
#include "registry/posix_state_folder.h"
#include "registry/restore.h"

namespace firn {
namespace {

// How long a start waits for a registry in which it may have to make the cluster.
constexpr Milliseconds kCreatePatience{10'000};

// How many machine ids of each rack a directory gets: all of them would be a thousand files, each
// synced, for the few programs of one host. `firn init` makes as many as one likes.
constexpr uint32_t kLocalWorkers = 16;

// Which cluster the folder's last claim was of; empty: none is remembered.
Result<std::string> RememberedCluster(StateFolder& folder) {
  const Result<std::string> text = folder.ReadHint();
  if (text.code() == Code::kNotFound) return std::string();
  if (!text.ok()) return text.status();
  const Result<Hint> hint = ParseHint(*text);
  return hint.ok() ? hint->uuid : std::string();  // a spoilt hint means nothing, as in a claim
}

bool IsDirectory(std::string_view registry) { return registry.starts_with("dir://"); }

Status EnsureCluster(const NodePlace& place, Coordinator& coordinator, StateFolder& folder,
                     const Layout& layout, const Clock& clock, Entropy& entropy) {
  BlockingCoordinator registry(coordinator, clock);
  FIRN_TRY(registry.Connect(kCreatePatience));
  const Result<MetaAsRead> meta = ReadMeta(registry);
  if (meta.code() != Code::kNotFound) return {};  // what else is wrong, the claim will say
  FIRN_ASSIGN(const std::string remembered, RememberedCluster(folder));
  if (!remembered.empty()) {
    return Conflict("there is no cluster at " + place.registry + ", but " + place.state_dir +
                    " remembers cluster " + remembered +
                    ": if its data are lost, run firn restore");
  }
  const RackSplit split = RackSplit::Default(layout);
  FIRN_TRY(registry.PrepareRoot());
  if (IsDirectory(place.registry)) {
    const ClusterPlan plan{.layout = layout,
                           .rack_bits = split.rack_bits(),
                           .workers = std::min(kLocalWorkers, split.workers())};
    const Status made = MakeCluster(registry, plan, entropy);
    // Another program may have been first.
    return made.code() == Code::kConflict ? Status() : made;
  }
  const RestoreFacts facts{.now = clock.Wall(), .layout = layout, .rack_bits = split.rack_bits()};
  return RestoreCluster(registry, facts, entropy).status();
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
  options.claim.identity.owner = owner.text();
  options.claim.session_timeout = place.session_timeout;
  FIRN_ASSIGN(auto folder, PosixStateFolder::Open(place.state_dir, owner.file_stem()));
  if (place.registry.starts_with(kStaticRegistry)) {
    const Layout& layout = options.claim.layout;
    FIRN_ASSIGN(const MachineId machine, ParseStaticRegistry(place.registry, layout));
    options.given = StaticKeeperOptions{
        .layout = layout, .machine = machine, .first_start = place.static_first_start};
    return std::make_unique<IssuingNode>(options, clock, entropy,
                                         std::make_unique<AbsentCoordinator>(), std::move(folder));
  }
  FIRN_ASSIGN(auto coordinator,
              OpenCoordinator(place.registry,
                              {.auth = place.credentials, .session_time = place.session_timeout},
                              clock, entropy));
  if (place.create_cluster || IsDirectory(place.registry)) {
    FIRN_TRY(EnsureCluster(place, *coordinator, *folder, options.claim.layout, clock, entropy));
  }
  return std::make_unique<IssuingNode>(options, clock, entropy, std::move(coordinator),
                                       std::move(folder));
}

}  // namespace firn
