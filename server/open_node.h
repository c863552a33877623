#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/entropy.h"
#include "common/status.h"
#include "common/units.h"
#include "registry/coordinator.h"
#include "registry/owner.h"
#include "registry/state_folder.h"
#include "server/issuing_node.h"

namespace firn {

inline constexpr std::string_view kStaticRegistry = "static:";

// The machine id that "static:<id>" names. kInvalid when it is none of the layout's.
Result<MachineId> ParseStaticRegistry(std::string_view registry, const Layout& layout);

// What a node needs from the outside world, by name.
struct NodePlace {
  std::string registry;     // dir:///path, zk://... or static:<id>
  std::string credentials;  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::string state_dir;
  bool create_cluster = false;      // make a cluster where the registry holds none
  bool static_first_start = false;  // of static: the number was never used before
};

// Locks the state folder, opens the registry, makes the cluster where that is permitted, and joins
// a node that is not yet started. kConflict: another process has the state folder.
//
// A directory registry that holds no cluster always becomes one: whether it is new or was lost, the
// registry itself has found out (see registry/dir_witness.h). In both cases it is refused when the
// state folder remembers a cluster: then something was lost, and `firn restore` is the way.
Result<std::unique_ptr<IssuingNode>> OpenNode(const NodePlace& place, const OwnerName& owner,
                                              IssuingNodeOptions options, const Clock& clock,
                                              Entropy& entropy);

}  // namespace firn
