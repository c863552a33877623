#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/slot.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore_memory.h"
#include "registry/operate/root_settings.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// A bound that a server reports, with its machine id if the server reports that.
struct ReportedBound {
  WallMs bound;
  std::optional<MachineId> machine{};

  friend bool operator==(const ReportedBound&, const ReportedBound&) = default;
};

// Facts for a restore from other sources than the registry, which lost data or went back in time.
struct RestoreFacts {
  WallMs now;                    // by the operator's clock
  Milliseconds window{600'000};  // the largest --claim_window of any server
  // The largest known clock skew, also of id clocks: after an earlier restore they are as far ahead
  // of the wall clock as the floor was. A holder may still adopt an unreported bound, which is at
  // most a window ahead of the holder's id clock.
  Milliseconds skew_max{10'000};
  Milliseconds clock_skew_max{10'000};  // maximum difference between `now` and the registry's clock
  WallMs floor{};  // the time that ids may have reached, by documents and answers; certain
  std::vector<ReportedBound> bounds{};  // reported by running servers
  std::vector<MachineId> retired{};     // to retire
  std::vector<ReservedIds> reserved{};  // for other systems; records are created for them
  std::string uuid{};                   // of the cluster, for a tree without a root node
  Layout layout = Layout::Firn();       // likewise
  int rack_bits = 2;                    // likewise
  std::string default_strategy{};       // likewise
  // See ClusterMeta; used if the tree has no such date, or a later one.
  WallMs ids_since{};
  bool NewIdsSince(const ClusterMeta& known) const {
    return ids_since != WallMs() && (known.ids_since == WallMs() || ids_since < known.ids_since);
  }
  // Likewise, see ClusterMeta. Default: half.
  std::optional<int64_t> lease_share{};
  // Of each rack. Default: as many as the tree still has, or all if it has none.
  std::optional<uint32_t> workers{};
  // The registry contains another cluster than `uuid`, which was never used and may be replaced.
  bool replaces_unused = false;
  // The memory for a later run; RestoreCluster sets `replaced`. Includes that of an earlier run,
  // except its documents.
  RestoreMemory memory{};
  bool forgets_documents = false;  // of earlier runs, because the files are lost
  // Restores the tags: called under the frozen root node, after all other steps. A failure ends the
  // restore, and the cluster stays frozen.
  std::function<Status(const MetaAsRead& frozen)> tags{};
  // Called immediately before the cluster is unfrozen: raises the tags above all servers' reports,
  // and returns the reports. The floor takes them into account.
  std::function<Result<std::vector<ProviderReport>>(const MetaAsRead& frozen)> last_reports{};
};

// Adds a server's report, from its node or requested directly: its bound, and its skew and claim
// window unless they are implausible, since a node is untrusted input.
void AddReport(const ProviderReport& report, RestoreFacts& facts);

// The result of a restore.
struct RestoreReport {
  std::string uuid;
  WallMs floor;
  bool root_made = false;  // by this call, or by an earlier interrupted one
  uint32_t workers = 0;    // slots in each rack, up to the highest
  // With an implausible bound, in the tree or in a report, or with an unreadable record.
  std::vector<Slot> retired{};
  // Now reserved, although a server of this cluster has claimed them.
  std::vector<Slot> reserved_late{};
  std::vector<ReportedBound> ignored{};  // implausible: more than a day ahead
  std::vector<std::string> repaired{};   // paths of damaged nodes that were emptied or removed
};

// Returns whether the root node is new: `firn init` or a restore has not completed it.
bool IsBeingMade(const ClusterMeta& meta);

// Does the first step of RestoreCluster: freezes the cluster, or creates its root node frozen, so
// that running servers can announce themselves and report their bounds and ledgers. Call
// RestoreCluster afterwards. Blocks.
Status FreezeForRestore(BlockingCoordinator& registry, const RestoreFacts& facts, Entropy& entropy);

// Raises the cluster's floor above every time that a process may have used or may still hold: 3
// windows above the highest of now plus the largest skew, the previous floor, every plausible bound
// in the tree and every reported one. Now alone does not suffice: after an earlier restore all
// claims are ahead of every clock, and an unreachable holder may have renewed since. The skew is
// added to now only: it includes id clocks, so adding it to the floor would double, with each
// restore, how far the cluster is ahead. Retires slots with poisoned records, creates missing
// slots, and permits claims again, under a new version of the root node.
//
//  1. Freezes the cluster in a new era: writes based on earlier reads of the root node fail. The
//     same write stores the memory of the restore, which the last step removes.
//  2. Repairs damaged nodes. Computes the floor from the tree and writes it to the root node.
//  3. Creates missing records, unless another process changes the root node. Those with known
//     bounds are marked as used. If it replaces an unused cluster, removes surplus records.
//  4. Restores the tags by `facts.tags`; then, in a re-created cluster, makes the tag `default` as
//     MakeCluster does. If it was defined differently, `facts.tags` has to make it: servers that
//     remember it refuse the plain form. In an existing cluster it is not guessed.
//  5. Takes the servers' latest reports into account, and unfreezes the cluster, unless another
//     process has changed the root node, the era or the memory.
//
// Re-creates an unreadable root node like a lost one, from the uuid and layout of the facts, and
// also that of another cluster which was never used (`facts.replaces_unused`).
//
// A reported bound more than a day ahead does not raise the floor. But its server may have issued
// up to it, so its slot is retired.
//
// The floor is based on the later of `now` and the registry's clock. kInvalid if the two are too
// far apart.
//
// After an interruption or a refusal the cluster stays frozen, and the call may be repeated. Each
// call raises the floor again. Blocks.
Result<RestoreReport> RestoreCluster(BlockingCoordinator& registry, const RestoreFacts& facts,
                                     Entropy& entropy);

// Repairs nodes that a registry reports as damaged (kCorrupt; a directory's files), if their
// contents are not needed. Empties folders and the clock node. Removes announcements (`live` and
// provider nodes), which their owners re-create, lists of past holders, and operators' settings for
// servers. Changes no records of machine ids and no tags. Requires a frozen root node of this era.
// Returns the paths of the repaired nodes. Blocks.
Result<std::vector<std::string>> RepairNodes(BlockingCoordinator& registry, const Nonce& era);

}  // namespace firn
