#pragma once

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
// The cluster uuid that servers with static machine ids report. Clients treat them as one cluster.
inline constexpr std::string_view kStaticClusterUuid = "static";

// Returns the machine id in "static:<id>". kInvalid if the layout does not have this machine id.
Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout);

// Names of the resources that a node uses, and settings for opening them.
struct NodePlace {
  std::string registry;     // dir:///path, zk://... or static:<id>
  std::string credentials;  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::string state_dir;
  std::string grant_dir = StatePlace::kGrantDir;  // in memory; see posix_state_folder.h
  std::optional<Layout> layout{};   // empty: the cluster's layout, or `firn` for a new cluster
  bool static_first_start = false;  // static: the machine id was never used before
  bool static_clock_ok = false;     // static: trust the wall clock, even if far from the last id
  bool static_adopt = false;        // static: the grant file was moved here and has no copy
  // Strategy of undefined tags for a new cluster: `snowflake`; empty: undefined tags are refused.
  std::string default_strategy{};
  // Number of machine ids that the node holds at once, 1 to kMachineIdsMax. Must be 1 with static:
  // or a named worker.
  uint32_t machine_ids = 1;
};

inline constexpr uint32_t kMachineIdsMax = 16;

// Open resources of a node: its locked folder, its cached tags (not for `static:`), and the access
// to registries.
struct NodeParts {
  std::unique_ptr<StateFolder> folder;
  std::vector<std::unique_ptr<StateFolder>> more_folders{};  // one for each further machine id
  std::unique_ptr<TagMemory> kept;
  uint64_t time_namespace = kOnlyTimeNamespace;  // see ClaimOptions
  RegistryOpener open = OpenCoordinator;
};

// kInvalid if the registry or the worker does not permit the number of machine ids.
Status CheckMachineIds(const NodePlace& place, const ClaimOptions& claim);

// Checks whether a state folder may be on the file system `foreign` (from ForeignFileSystem); warns
// about any foreign one. A network file system may block for an unlimited time, and its locks may
// not work. A machine id from a registry tolerates that. A static one depends on its file alone, so
// it gets kInvalid.
Status CheckStateFileSystem(const NodePlace& place, std::string_view foreign);

// Locks the state folders, for OpenNodeOn. kConflict: another process uses one. kInvalid: see
// CheckMachineIds.
Result<NodeParts> OpenParts(const NodePlace& place, const OwnerName& owner,
                            const ClaimOptions& claim);

// Joins the cluster (join_cluster.h), and returns a node that is not started yet. Sets the parts of
// `options` that the other arguments determine. kConflict: a cluster was lost. kInvalid: the
// cluster is not the requested one, or does not have the rack or worker.
Result<std::unique_ptr<IssuingNode>> OpenNodeOn(NodeParts ground, const NodePlace& place,
                                                const OwnerName& owner, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy);

}  // namespace firn
