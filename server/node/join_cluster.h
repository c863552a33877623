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
  std::optional<Layout> layout{};  // empty: the cluster's, or `firn` for a new one
  std::string default_strategy{};  // of undefined tags, for a new cluster
  uint32_t workers_min = 0;        // of each rack, for a new cluster
  std::string kept_stem{};         // the state folder, and the first part of its files' names
  Milliseconds claim_window{};     // for the restore command that is printed
  RegistryOpener open = OpenCoordinator;
};

// A connection to the registry, and what is known of the cluster in it.
struct JoinedCluster {
  std::unique_ptr<Coordinator> coordinator;
  Layout layout;
  RackSplit split;
  std::string uuid{};   // empty: not known yet
  int64_t session = 0;  // that the coordinator is connected in, as last reported; 0: none
  bool known = false;   // all this was read from the registry; nothing is guessed or remembered
};

// Opens the registry and reads the cluster's settings. Blocks, for seconds if necessary.
//
//  1. A directory without a cluster gets one: the registry itself determines whether it is new or
//     was lost (see registry/dir_witness.h). A half-created cluster is completed.
//  2. Not if `folder` remembers a cluster: then data were lost, which kConflict reports, and
//     `firn restore` is the remedy. In ZooKeeper only `firn init` creates clusters.
//  3. A cluster determines the layout; a different requested one is kInvalid. So are a cluster and
//     a folder of another format than this program supports.
//     If the registry holds another cluster than `folder` remembers, the node stays in the latter:
//     the claim refuses the other, and the node prints the command that restores its own.
//  4. An unreachable registry is not a failure: the claim's keeper keeps trying, and the folder may
//     contain a claim that can be resumed. The layout is then the one that `folder` remembers.
//
// `folder` must be locked. `clock` and `entropy` must outlive the coordinator.
Result<JoinedCluster> JoinCluster(const ClusterPlace& place, StateFolder& folder,
                                  const Clock& clock, Entropy& entropy);

}  // namespace firn
