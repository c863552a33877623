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

// A connection to the registry, and the cluster's settings as far as they are known.
struct JoinedCluster {
  std::unique_ptr<Coordinator> coordinator;
  Layout layout;
  RackSplit split;
  std::string uuid{};   // empty: not known yet
  int64_t session = 0;  // the coordinator's session, as last reported; 0: none
  bool known = false;   // all members come from the registry; none is guessed or remembered
};

// Opens the registry and reads the cluster's settings. Blocks, for seconds if necessary.
//
//  1. A directory without a cluster gets one; a half-created cluster is completed. The registry
//     itself determines whether the directory is new or was lost (registry/dir/dir_witness.h).
//  2. If `folder` remembers a cluster, none is created: its data were lost, kConflict reports that,
//     and `firn restore` is the remedy. In ZooKeeper only `firn init` creates clusters.
//  3. A cluster determines the layout: a different requested layout is kInvalid, as is a cluster or
//     folder whose format this program does not support. If the registry contains another cluster
//     than `folder` remembers, the node stays in the remembered one: the claim refuses the other,
//     and the node prints the command that restores its own.
//  4. An unreachable registry is not a failure: the claim's keeper keeps trying, and the folder may
//     contain a claim that can be resumed. The layout is then the one that `folder` remembers.
//
// `folder` must be locked. `clock` and `entropy` must outlive the coordinator.
Result<JoinedCluster> JoinCluster(const ClusterPlace& place, StateFolder& folder,
                                  const Clock& clock, Entropy& entropy);

}  // namespace firn
