#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Told now and then how many slots stand, of how many.
using SlotsMade = std::function<void(uint32_t made, uint32_t of)>;

// What a cluster is made of.
struct ClusterPlan {
  Layout layout = Layout::Firn();
  int rack_bits = 2;
  std::optional<uint32_t> workers{};  // of each rack; all that the layout has, unless given
  std::string uuid{};                 // of the lost cluster that this one continues; drawn if empty
  WallMs floor{};                     // no claim below it
  std::string default_strategy{};     // as ClusterMeta has it
  // Of a cluster that serves undefined tags: no id under these names is older. Unless given, a day
  // before the cluster is made, by the registry's clock.
  WallMs ids_since{};
  // Asked when all nodes are there and before anybody can claim: a refusal leaves the cluster half
  // made, as MakeCluster's own failures do.
  std::function<Status()> last_look{};
  SlotsMade progress{};
};

// Why the root node of a cluster that is not whole yet is frozen.
inline constexpr char kBeingMade[] = "the cluster is being made";

// What whoever wants something changed under a frozen root node is told: why it is frozen, and what
// thaws it.
std::string WhyFrozen(const ClusterMeta& meta);

// The tag that a cluster is made with, a plain snowflake tag like any other.
inline constexpr std::string_view kFirstTag = "default";

// Makes a cluster where there is none: its root node, the clock node, a record for each slot, and
// the tag `default`. The root node is frozen until everything is there, so a second call completes
// what a first one left half done. kConflict: there is a whole one already. Blocks.
//
// Sharp edge: whether there really was no cluster before is the caller's to know; after a loss of
// data the floor must lie above every bound that anybody may still hold (see restore.h).
Status MakeCluster(BlockingCoordinator& registry, const ClusterPlan& plan, Entropy& entropy);

// The root node and its version, after a sync; kNotFound, kCorrupt or the registry's failure.
struct MetaAsRead {
  ClusterMeta meta;
  int64_t version = 0;
  WallMs modified{};  // by the registry's clock, as it was read
};
Result<MetaAsRead> ReadMeta(BlockingCoordinator& registry);

// Makes the tag `default`, unless there is one: for whoever makes a cluster, or makes it anew.
// kConflict: the root has changed.
Status MakeFirstTag(BlockingCoordinator& registry, const MetaAsRead& root);

// Gives the root node new contents and an era of its own, which `meta` then tells; eras before it
// end, so that nothing sent for them takes effect any more. `version` is the root node's as it was
// read; without one it is made. The version it has now, or kConflict.
Result<int64_t> BeginEra(BlockingCoordinator& registry, ClusterMeta& meta,
                         std::optional<int64_t> version, Entropy& entropy);

// Gives the root node new contents within the era it was read in, and `stands` the new version.
Status SetMeta(BlockingCoordinator& registry, MetaAsRead& stands);

// The part of it that makes what is missing below a root node; nothing that is there is changed. A
// record made anew is a loss of data to whoever held it, so this works under a frozen root node
// only, as it was read: kInvalid when it is not frozen, kConflict when it has changed meanwhile.
// The floor above the lost record's bound must be in it already. Works in small portions, each with
// the coordinator's whole time limit; whatever a failure leaves, the next call completes.
Status MakeMissingNodes(BlockingCoordinator& registry, const MetaAsRead& frozen,
                        std::optional<uint32_t> workers, const SlotsMade& progress = {});

}  // namespace firn
