#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/restore_policy.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// What a restore does to a tag, or would do.
struct RestoredTag {
  enum class How {
    kLifted,      // it existed
    kLiftedLate,  // it existed, and a later report shows a higher ledger
    kNamed,       // an answer names it; created if it was missing
    kFromBackup,  // created, because only a document contains it
    kDeleted,     // not created, because it was deleted before its first number
  };
  How how;
  std::string tag;
  std::optional<int64_t> next{};  // its next number is this one or a higher one
  int64_t gap = 0;                // above the highest known number
  bool reported = false;          // a server reports its ledger
};

// Lifts the ledger of every segment tag to LiftedTo, after the registry lost data. Adds each tag to
// `changes`. Leaves no tag's node at a version that cannot be guarded (node_version.h). May be
// called only while the cluster is frozen or no server takes ranges. Fails on the first tag that
// cannot be written; the call may be repeated.
//
// Every used number lies less than one range above the highest reported ledger. A server knows its
// own writes, and learns the writes of other servers through its watch. A write that no running
// server reports was still in flight, and moves the ledger by at most step_max. The minimum gap is
// twice step_max.
//
// Sharp edge: if no server reports a tag, servers may have taken any number of ranges since the
// registry's present state or the backup was written. No gap is proven to suffice.
Status LiftLedgers(BlockingCoordinator& registry, const LedgerFacts& facts,
                   std::vector<RestoredTag>& changes);

// Lifts each tag whose ledger in `late` is above that in `facts` to the number to which LiftLedgers
// would have lifted it. A tag that has reached that number is not lifted again. kConflict: a tag
// would have no numbers left.
Status LiftAbove(BlockingCoordinator& registry, const std::vector<ProviderReport>& late,
                 const LedgerFacts& facts, std::vector<RestoredTag>& changes);

// Repairs the tags after the registry lost data, while the cluster is frozen under the root node
// `frozen`:
//
//  0. If the restore replaces an unused cluster, the tags of that cluster that the documents
//     contain are removed.
//  1. Tags that have issued no ids and whose form differs from `said`, because an edit was lost,
//     get the form in `said`. A tag also gets the form in the documents if the documents or the
//     reports show numbers of it and the registry does not, or if it is unused and servers know it
//     in that form. Tags that an earlier run has made can be changed, too. A used tag keeps its
//     owner (buffer = owner). It gets an owner only if `said` gives it one, or if an earlier run
//     has made the tag. kConflict: a tag may have issued ids in another form.
//  2. The ledger of every segment tag is lifted (LiftLedgers).
//  3. Missing tags of `said` are created, above their start and the known ledgers plus the gap.
//     Tags that exist are lifted to the start in `said`.
//  4. Tags that only the backup contains are created in the same way.
//
// Adds each tag to `changes`. Fails on the first tag that cannot be written; the call may be
// repeated, and then adds the gap again.
Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<GivenTag>& said, LedgerFacts facts,
                   std::vector<RestoredTag>& changes);

// Returns what RestoreTags would do, and writes nothing. `now`: the local clock.
Result<std::vector<RestoredTag>> PlanTags(BlockingCoordinator& registry,
                                          const std::vector<GivenTag>& said,
                                          const LedgerFacts& facts, WallMs now);

}  // namespace firn
