#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Progress: called from time to time with the slots made, and their total.
using SlotsMade = std::function<void(uint32_t made, uint32_t of)>;

// The parameters of a new cluster.
struct ClusterPlan {
  Layout layout = Layout::Firn();
  int rack_bits = 2;
  std::optional<uint32_t> workers{};  // of each rack; default: all that the layout has
  std::string uuid{};                 // of the lost cluster that this one continues; drawn if empty
  WallMs floor{};                     // no claim below it
  int64_t lease_share = ClusterMeta::kLeaseShare;
  std::string default_strategy{};  // see ClusterMeta
  // In a cluster that serves undefined tags: no id of such a tag is older. Default: a day before
  // the cluster is made, by the registry's clock.
  WallMs ids_since{};
  // Called when all nodes exist and before any server can claim. A failure leaves the cluster half
  // made, as MakeCluster's own failures do.
  std::function<Status()> last_look{};
  SlotsMade progress{};
};

// The reason in the frozen root node of an incomplete cluster.
inline constexpr char kBeingMade[] = "the cluster is being made";

// Returns a sentence for operations that a frozen root node prevents: why it is frozen, and which
// command unfreezes it.
std::string WhyFrozen(const ClusterMeta& meta);

// The tag of every new cluster, an ordinary snowflake tag.
inline constexpr std::string_view kFirstTag = "default";

// Makes a new cluster: its root node, the clock node, a record for each slot, and the tag
// `default`. The root node is frozen until everything exists, so a second call completes an
// interrupted one. kConflict: there is a complete cluster already. Blocks.
//
// Sharp edge: the caller must know that there was no cluster before. After a loss of data the floor
// must be above every bound that a process may still hold (see restore.h).
Status MakeCluster(BlockingCoordinator& registry, const ClusterPlan& plan, Entropy& entropy);

// Returns the root node and its version, after a sync; kNotFound, kCorrupt or the registry's error.
struct MetaAsRead {
  ClusterMeta meta;
  int64_t version = 0;
  WallMs modified{};  // by the registry's clock
};
Result<MetaAsRead> ReadMeta(BlockingCoordinator& registry);

// Makes the tag `default` if it does not exist: for a new or re-created cluster.
// kConflict: the root node has changed.
Status MakeFirstTag(BlockingCoordinator& registry, const MetaAsRead& root);

// Writes the root node with a new era, which is stored in `meta`. Earlier eras end: writes sent in
// them no longer take effect. `version` is the root node's version as read; without one, the node
// is created. Returns the new version, or kConflict. `also` adds writes to the same multi.
using EraWrites = std::function<std::vector<Write>(const Nonce& era)>;
Result<int64_t> BeginEra(BlockingCoordinator& registry, ClusterMeta& meta,
                         std::optional<int64_t> version, Entropy& entropy,
                         const EraWrites& also = {});

// Writes the root node, and `also`, within the era in which it was read, and updates the version in
// `stands`.
Status SetMeta(BlockingCoordinator& registry, MetaAsRead& stands, std::vector<Write> also = {});

// Returns why a command that last read the root node as `stands` has failed. If the root node has
// changed since, another command is the cause.
Status IfOvertaken(BlockingCoordinator& registry, const MetaAsRead& stands, const Status& failed);

// Makes the nodes that are missing below a root node; existing nodes are not changed. To a holder,
// a re-created record is a loss of data, so `frozen` must be a frozen root node:
// kInvalid if it is not frozen, kConflict if it has changed since it was read. Its floor must
// already be above the lost record's bound. Works in small portions, each with the coordinator's
// full time limit. A later call completes a failed one.
Status MakeMissingNodes(BlockingCoordinator& registry, const MetaAsRead& frozen,
                        std::optional<uint32_t> workers, const SlotsMade& progress = {});

}  // namespace firn
