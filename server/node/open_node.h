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
// What servers with static machine ids report instead of a cluster's uuid: to clients they are one
// cluster.
inline constexpr std::string_view kStaticClusterUuid = "static";

// The machine id that "static:<id>" names. kInvalid if it is not one of the layout's.
Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout);

// What a node needs from its environment, by name.
struct NodePlace {
  std::string registry;     // dir:///path, zk://... or static:<id>
  std::string credentials;  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::string state_dir;
  std::string grant_dir = StatePlace::kGrantDir;  // memory; see posix_state_folder.h
  std::optional<Layout> layout{};                 // empty: the cluster's, or `firn` for a new one
  bool static_first_start = false;                // of static: the number was never used before
  bool static_clock_ok = false;  // of static: the wall clock is right, even if far from the last id
  bool static_adopt = false;     // of static: a grant file that was moved here is the only one
  // Of undefined tags, for a new cluster: `snowflake`; empty: undefined tags are refused.
  std::string default_strategy{};
  // How many the node holds at once, 1 to kMachineIdsMax. For static:, and if a worker is named,
  // there is one.
  uint32_t machine_ids = 1;
};

inline constexpr uint32_t kMachineIdsMax = 16;

// What a node is built on, already opened: its locked folder, its cached tags (not for `static:`),
// and the access to registries.
struct NodeParts {
  std::unique_ptr<StateFolder> folder;
  std::vector<std::unique_ptr<StateFolder>> more_folders{};  // one for each further machine id
  std::unique_ptr<TagMemory> kept;
  RegistryOpener open = OpenCoordinator;
};

// kInvalid for a number of machine ids that is impossible with that registry.
Status CheckMachineIds(const NodePlace& place, const ClaimOptions& claim);

// Whether a state folder may be on the file system of that name, as ForeignFileSystem returns it;
// the log warns about any. A network file system may block for as long as another host likes, and
// its locks may be ineffective: a machine id that a registry grants can bear that; one that depends
// on its file alone cannot: kInvalid.
Status CheckStateFileSystem(const NodePlace& place, std::string_view foreign);

// Locks the state folder, joins the cluster (see join_cluster.h), and creates a node of it that is
// not yet started. Sets the parts of `options` that `place` and `owner` determine. kConflict:
// another process has the state folder, or a cluster was lost. kInvalid: the cluster is not the
// requested one, or has no such rack or worker.
Result<std::unique_ptr<IssuingNode>> OpenNode(const NodePlace& place, const OwnerName& owner,
                                              IssuingNodeOptions options, const Clock& clock,
                                              Entropy& entropy);

// The same on ground that is there; of the machine it asks nothing. `options` say the time
// namespace.
Result<std::unique_ptr<IssuingNode>> OpenNodeOn(NodeParts ground, const NodePlace& place,
                                                const OwnerName& owner, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy);

}  // namespace firn
