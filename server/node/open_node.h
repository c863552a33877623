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
// What servers whose machine ids are given by hand say instead of a cluster's uuid: to clients they
// are one cluster.
inline constexpr std::string_view kStaticClusterUuid = "static";

// The machine id that "static:<id>" names. kInvalid when it is none of the layout's.
Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout);

// What a node needs from the outside world, by name.
struct NodePlace {
  std::string registry;     // dir:///path, zk://... or static:<id>
  std::string credentials;  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::string state_dir;
  std::string grant_dir = StatePlace::kGrantDir;  // memory; see posix_state_folder.h
  std::optional<Layout> layout{};   // empty: the cluster's, or `firn` where it has to be chosen
  bool static_first_start = false;  // of static: the number was never used before
  bool static_clock_ok = false;  // of static: the wall clock is right, far from the last id or not
  bool static_adopt = false;     // of static: a grant file that was moved here is the only one
  // Of tags that nobody has defined, where a cluster is made: `snowflake`; empty: there are none.
  std::string default_strategy{};
  // How many the node holds at once, 1 to kMachineIdsMax. Of static:, and where a worker is named,
  // there is one.
  uint32_t machine_ids = 1;
};

inline constexpr uint32_t kMachineIdsMax = 16;

// What a node stands on, already there: its locked folder, what is kept of its tags (of `static:`
// nothing), and the way to registries.
struct NodeGround {
  std::unique_ptr<StateFolder> folder;
  std::vector<std::unique_ptr<StateFolder>> more_folders{};  // one for each further machine id
  std::unique_ptr<TagMemory> kept;
  RegistryOpener open = OpenCoordinator;
};

// kInvalid for a number of machine ids that is not to be had there.
Status CheckMachineIds(const NodePlace& place, const ClaimOptions& claim);

// Whether a state folder may lie on the file system of that name, as ForeignFileSystem tells it;
// the log warns of any. Elsewhere a disk may stand still for as long as somebody else likes, and
// locks may mean little: a machine id that a registry grants can bear that, one that hangs on its
// file alone cannot, kInvalid.
Status CheckStateFileSystem(const NodePlace& place, std::string_view foreign);

// Locks the state folder, joins the cluster (see join_cluster.h), and makes a node of it that is
// not yet started. Of `options` it sets what `place` and `owner` say. kConflict: another process
// has the state folder, or a cluster was lost. kInvalid: the cluster is another than was asked for,
// or has no such rack or worker.
Result<std::unique_ptr<IssuingNode>> OpenNode(const NodePlace& place, const OwnerName& owner,
                                              IssuingNodeOptions options, const Clock& clock,
                                              Entropy& entropy);

// The same on ground that is there; of the machine it asks nothing. `options` say the time
// namespace.
Result<std::unique_ptr<IssuingNode>> OpenNodeOn(NodeGround ground, const NodePlace& place,
                                                const OwnerName& owner, IssuingNodeOptions options,
                                                const Clock& clock, Entropy& entropy);

}  // namespace firn
