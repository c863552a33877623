#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"
#include "tools/firn/output.h"

namespace firn {

// Lifting the ledgers of segment tags after a loss of the registry's data. Used numbers lie below
// the highest ledger that anybody saw, and one range: a server knows of its own sets, and of
// everybody else's through its watch, so what no living server has told is a set whose answer was
// still on its way, and that moved the ledger by step_max at most. Twice that is the least gap.
//
// Sharp edge: where nobody has told anything of a tag, any number of ranges may have been taken
// since the tree's own state, and no gap is proven; such a tag is named.

// How far the tag's ledger may have come, by those reports that say so: one that has no room to
// name every tag says of the others how far the highest of them is. Empty: none says anything.
std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports);

// Lifts every segment tag's ledger to the highest of the tree's, its start and the reported, plus
// the gap, and adds to the output what became of each: those of which nobody reported are named.
// Leaves no tag's node at a version that cannot be guarded (node_version.h). While the cluster is
// frozen, or nobody takes anything. Fails on the first tag that cannot be written; the call may be
// repeated.
Status LiftLedgers(BlockingCoordinator& registry, const std::vector<ProviderReport>& reports,
                   int64_t wanted_gap, Output& output);

}  // namespace firn
