#pragma once

#include <vector>

#include "common/base/status.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/restore_policy.h"
#include "registry/seam/blocking_coordinator.h"
#include "tools/firn/output.h"

namespace firn {

// Lifts the ledger of every segment tag to LiftedTo, after the registry lost data. Adds a line for
// each tag to the output, and a warning for a tag that no server reports. Leaves no tag's node at a
// version that cannot be guarded (node_version.h). Call it only while the cluster is frozen, or no
// server takes ranges. Fails on the first tag that cannot be written; the call may be repeated.
//
// Every used number lies less than one range above the highest reported ledger: a server knows its
// own writes, and those of others through its watch. A write that no running server reports was
// still in flight, and such a write moves the ledger by at most step_max. The minimum gap is twice
// that.
//
// Sharp edge: if no server reports a tag, any number of ranges may have been taken since the
// registry's present state, and since a backup. No gap is proven to suffice; the output names such
// a tag.
Status LiftLedgers(BlockingCoordinator& registry, const LedgerFacts& facts, Output& output);

// Lifts the tags of which `late` reports more than `facts` as far as LiftLedgers would have lifted
// them, so a tag that is already there is not lifted twice. kConflict: a tag would have no numbers
// left.
Status LiftAbove(BlockingCoordinator& registry, const std::vector<ProviderReport>& late,
                 const LedgerFacts& facts, Output& output);

// Repairs the tags after the registry lost data, while the cluster is frozen under the root node
// `frozen`:
//
//  0. In place of an unused cluster, its tags that the documents contain are removed.
//  1. Unused tags whose form differs from `said` (an edit was lost) get that form. So do those of
//     which a document and no registry shows numbers, those that servers know in another form, and
//     those that an earlier run has made. kConflict: a tag may have issued ids in another form.
//  2. The ledger of every segment tag is lifted (LiftLedgers).
//  3. Missing tags of `said` are created, above their start and the known ledgers plus the gap.
//     Tags that exist are lifted to the start in `said`.
//  4. So are tags that only the backup contains. The output lists them: no server reports their
//     numbers.
//
// Adds a line for each tag to the output. Fails on the first tag that cannot be written; the call
// may be repeated, and then adds the gap again.
Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<GivenTag>& said, LedgerFacts facts, Output& output);

// Adds to the output what RestoreTags would do, and writes nothing. `now`: the local clock.
Status PlanTags(BlockingCoordinator& registry, const std::vector<GivenTag>& said,
                const LedgerFacts& facts, WallMs now, Output& output);

}  // namespace firn
