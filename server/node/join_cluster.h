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

// Location of a node's cluster, and settings for creating it.
struct ClusterPlace {
  std::string registry{};     // dir:///path or zk://...
  std::string credentials{};  // user:password, for ZooKeeper
  Milliseconds session_timeout{10'000};
  std::optional<Layout> layout{};  // empty: the cluster's layout, or `firn` for a new cluster
  std::string default_strategy{};  // of undefined tags, for a new cluster
  uint32_t workers_min = 0;        // per rack, for a new cluster
  std::string kept_stem{};         // common beginning of the paths of the state folder's files
  Milliseconds claim_window{};     // for the printed restore command
  RegistryOpener open = OpenCoordinator;
};

// A connection to the registry, and the known settings of the cluster.
struct JoinedCluster {
  std::unique_ptr<Coordinator> coordinator;
  Layout layout;
  RackSplit split;
  std::string uuid{};   // empty: unknown
  int64_t session = 0;  // the last session that the coordinator reported; 0: none
  bool known = false;   // all members were read from the registry; none is guessed or remembered
};

// Opens the registry and reads the cluster's settings. Blocks, for seconds if necessary.
//
//  1. In a directory without a cluster, one is created; an incomplete cluster is completed. The
//     registry itself determines whether the directory is new or was lost
//     (registry/dir/dir_witness.h).
//  2. If `folder` remembers a cluster and the directory has none, its data were lost. Then no
//     cluster is created: kConflict reports the loss, and `firn restore` is the remedy. In
//     ZooKeeper, only `firn init` creates clusters.
//  3. The cluster determines the layout. kInvalid if a different layout is requested, or if this
//     program does not support the format of the cluster or the folder. If the registry contains
//     another cluster than `folder` remembers, the node stays in the remembered one: the claim
//     refuses the other cluster, and the node prints the command that restores its own.
//  4. An unreachable registry is not an error: the claim's keeper keeps retrying, and the folder
//     may contain a claim that can be resumed. The layout is then the one that `folder` remembers.
//
// `folder` must be locked. `clock` and `entropy` must outlive the coordinator.
Result<JoinedCluster> JoinCluster(const ClusterPlace& place, StateFolder& folder,
                                  const Clock& clock, Entropy& entropy);

}  // namespace firn
