#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/coordinator.h"
#include "registry/state/state_folder.h"

namespace firn {

// How a node finds its cluster.
struct ClusterPlace {
  std::string registry{};     // dir:///path or zk://...
  std::string credentials{};  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::optional<Layout> layout{};  // empty: the cluster's, or `firn` where one is made
  std::string default_strategy{};  // of undefined tags, where a cluster is made
  uint32_t workers_min = 0;        // of each rack, where a cluster is made
  RegistryOpener open = OpenCoordinator;
};

// A way to the registry, and what is known of the cluster in it.
struct JoinedCluster {
  std::unique_ptr<Coordinator> coordinator;
  Layout layout;
  RackSplit split;
  std::string uuid{};   // empty: not known yet
  int64_t session = 0;  // that the coordinator is connected in, as far as it has told; 0: in none
  bool known = false;   // all this was read from the registry, nothing is guessed or remembered
};

// Opens the registry and reads what its cluster is made of. Blocks, for seconds when it has to.
//
//  1. A directory that holds no cluster becomes one: whether it is new or was lost, the registry
//     itself has found out (see registry/dir_witness.h). One that was left half made is completed.
//  2. It does not when `folder` remembers a cluster: then something was lost, kConflict says so,
//     and `firn restore` is the way. In ZooKeeper clusters are made by `firn init` alone.
//  3. A cluster lends its layout; another one than was asked for is kInvalid. So are a cluster and
//     a folder of another format than this program speaks.
//  4. A registry that is away is no reason to fail: the claim's keeper goes on looking, and the
//     folder may hold a claim to go on inside. The layout is then the one that `folder` remembers.
//
// `folder` is locked already. `clock` and `entropy` must outlive the coordinator.
Result<JoinedCluster> JoinCluster(const ClusterPlace& place, StateFolder& folder,
                                  const Clock& clock, Entropy& entropy);

}  // namespace firn
