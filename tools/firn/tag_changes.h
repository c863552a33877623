#pragma once

#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "common/tag/tag_diff.h"
#include "registry/cluster/tag_store.h"
#include "tools/firn/command.h"

namespace firn {

// Returns the changes as a verb's output, with "done" false. Done sets it to true.
Output ShowChanges(const std::vector<TagChange>& changes);
Result<Output> Done(Output output);

// Returns kInvalid for a tag that a running server would refuse: the server lacks its store, plugin
// or strategy, or the store does not permit `buffer = none` or `when_store_is_away = ledger`. Skips
// tags for which `present` has the same. Ok if no server runs. Blocks.
Status CheckServable(BlockingCoordinator& registry, const std::vector<StoredTag>& present,
                     const std::vector<TagDefinition>& tags);

// Creates or edits `tags` in the cluster. Refuses all of them, before the first write, if one
// change is not permitted; with `dry_run` only returns the changes. Other tags stay as they are. If
// a write fails, the error lists the changes, the tags that were written and the one that was not.
// If a tag's `high` is above its ledger, the ledger is lifted to it.
Result<Output> PutTags(TagStore& store, const TagListing& present,
                       const std::vector<TagDefinition>& tags, bool dry_run);

// Adds what people may not expect of these tags to the output of a verb that defines them: a
// sentence each under "notes", and as NOTE in the text. Reads the cluster's layout. Blocks.
Status AddTagNotes(BlockingCoordinator& registry, const std::vector<TagDefinition>& tags,
                   Output& output);

}  // namespace firn
