#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/state/owner.h"
#include "registry/state/posix_state_folder.h"
#include "server/node/issuing_node.h"
#include "server/node/kept_tags.h"

namespace firn {

inline constexpr std::string_view kStaticRegistry = "static:";
// The cluster uuid that servers with static machine ids report: clients treat them as one cluster.
inline constexpr std::string_view kStaticClusterUuid = "static";

// The machine id in "static:<id>". kInvalid if the layout has no such machine id.
Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout);

// What a node needs from its environment, by name.
struct NodePlace {
  std::string registry;     // dir:///path, zk://... or static:<id>
  std::string credentials;  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::string state_dir;
  std::string grant_dir = StatePlace::kGrantDir;  // memory; see posix_state_folder.h
  std::optional<Layout> layout{};                 // empty: the cluster's, or `firn` for a new one
  bool static_first_start = false;                // static: the machine id was never used before
  bool static_clock_ok = false;  // static: trust the wall clock, even if far from the last id
  bool static_adopt = false;     // static: the grant file was moved here and has no copy
  // Strategy of undefined tags for a new cluster: `snowflake`; empty: undefined tags are refused.
  std::string default_strategy{};
  // How many machine ids the node holds at once, 1 to kMachineIdsMax. Must be 1 with static: or a
  // named worker.
  uint32_t machine_ids = 1;
};

inline constexpr uint32_t kMachineIdsMax = 16;

// Resources of a node that are already open: its locked folder, its cached tags (not for
// `static:`), and the access to registries.
struct NodeParts {
  std::unique_ptr<StateFolder> folder;
  std::vector<std::unique_ptr<StateFolder>> more_folders{};  // one for each further machine id
  std::unique_ptr<TagMemory> kept;
  RegistryOpener open = OpenCoordinator;
};

// kInvalid for a number of machine ids that is impossible with that registry or worker.
Status CheckMachineIds(const NodePlace& place, const ClaimOptions& claim);

// Whether a state folder may be on the file system of that name (from ForeignFileSystem); warns
// about any foreign one. A network file system may block for as long as another host likes, and its
// locks may not work. A machine id that a registry grants tolerates that; a static one depends on
// its file alone, so it gets kInvalid.
Status CheckStateFileSystem(const NodePlace& place, std::string_view foreign);

// Reads further options from the state folder.
using ReadFolder = std::function<void(ClaimOptions& claim)>;

// Locks the state folder, calls `read`, which may be null, joins the cluster (join_cluster.h), and
// creates a node that is not yet started. Sets the parts of `options` that `place` and `owner`
// determine. kConflict: another process uses the state folder, or a cluster was lost. kInvalid: the
// cluster is not the requested one, or has no such rack or worker.
Result<std::unique_ptr<IssuingNode>> OpenNode(const NodePlace& place, const OwnerName& owner,
                                              IssuingNodeOptions options, const Clock& clock,
                                              Entropy& entropy, const ReadFolder& read = nullptr);

// Like OpenNode with resources that are already open: reads nothing from the machine, so `options`
// must contain the time namespace.
Result<std::unique_ptr<IssuingNode>> OpenNodeOn(NodeParts ground, const NodePlace& place,
                                                const OwnerName& owner, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy);

}  // namespace firn
