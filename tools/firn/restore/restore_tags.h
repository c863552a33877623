#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tools/firn/output.h"
#include "tools/firn/restore/ledger_lift.h"

namespace firn {

// A tag on the command line of `firn restore`: its `start` and, if `defined`, its definition.
struct GivenTag {
  TagDefinition tag;
  bool defined = true;
};

// Repairs the tags after the registry lost data, while the cluster is frozen under the root node
// `frozen`:
//
//  1. Unused tags whose form differs from `said` (an edit was lost) get that form. A tag that may
//     have issued ids keeps its form, and the output names it. The backup changes no form, since
//     it may be older than an edit, unless it replaces the tags of a new cluster.
//  2. The ledger of every segment tag is lifted (ledger_lift.h).
//  3. Missing tags of `said` are created, above their start and the known ledgers plus the gap.
//     Tags that exist are lifted to the start in `said`.
//  4. So are tags that only the backup contains. The output lists them: no server reports their
//     numbers.
//
// Adds a line for each tag to the output. Fails on the first tag that cannot be written; the call
// may be repeated.
Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<GivenTag>& said, const LedgerFacts& facts, Output& output);

// Adds to the output what RestoreTags would do, and writes nothing. `now`: the local clock.
Status PlanTags(BlockingCoordinator& registry, const std::vector<GivenTag>& said,
                const LedgerFacts& facts, WallMs now, Output& output);

}  // namespace firn
