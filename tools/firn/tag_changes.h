#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "common/tag/tag_diff.h"
#include "registry/cluster/tag_store.h"
#include "tools/firn/command.h"

namespace firn {

// A difference of tags as a verb says it; "done" is false.
Output ShowChanges(const std::vector<TagChange>& changes);
Result<Output> Done(Output output);

// kInvalid, in words, for a tag that no server could serve: none of those that run has its store,
// or the store permits no `buffer = none`. What `present` has already in the same way is not looked
// at. While no server runs nobody knows. Blocks.
Status CheckStores(BlockingCoordinator& registry, const std::vector<StoredTag>& present,
                   const std::vector<TagDefinition>& tags);

// Puts `tags` into the cluster over what it has: shown whole, and refused whole when one of them is
// not permitted, before the first is written; only shown with `dry_run`. Tags that are not named
// stay as they are. A failure on the way says the difference, what was done and what was not. A tag
// with a `high` above its ledger has the ledger lifted to it.
Result<Output> PutTags(TagStore& store, const TagListing& present,
                       const std::vector<TagDefinition>& tags, bool dry_run);

}  // namespace firn
