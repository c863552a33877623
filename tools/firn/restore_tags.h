#pragma once

#include <cstdint>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"
#include "tools/firn/output.h"

namespace firn {

// What an operator says of a tag: its `start`, and how it was defined, unless nobody knows.
struct SaidTag {
  TagDefinition tag;
  bool defined = true;
};

// Puts the tags right after a loss of the registry's data, while the cluster is frozen under the
// root node that was read:
//
//  1. A tag that is there, unused, in another form than it is said to have went back to before an
//     edit: it becomes what is said. One that may have been used is named and keeps its form.
//  2. Every segment tag's ledger is lifted (ledger_lift.h).
//  3. Tags that are said and not there are made, above what is said of them, and the reported plus
//     the gap. Those that are there are lifted to what is said.
//
// Adds to the output what became of each. Fails on the first tag that cannot be written; the call
// may be repeated.
Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<SaidTag>& said, const std::vector<ProviderReport>& reports,
                   int64_t wanted_gap, Output& output);

}  // namespace firn
