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
// or strategy, the store does not permit `buffer = none` or `when_store_is_away = ledger`, or the
// server's version does not support the setting. Skips tags whose entry in `present` has the same
// settings. Ok if no server runs. Blocks.
Status CheckServable(BlockingCoordinator& registry, const std::vector<StoredTag>& present,
                     const std::vector<TagDefinition>& tags);

// Creates or edits `tags` in the cluster. If one change is not permitted, fails without writing
// any. With `dry_run` only returns the changes. Does not change other tags. If a write fails, the
// error lists the changes, the tags that were written and the one that was not. If a tag's `high`
// is above its ledger, the ledger is lifted to it.
Result<Output> PutTags(TagStore& store, const TagListing& present,
                       const std::vector<TagDefinition>& tags, bool dry_run);

// Adds notes on behaviour of these tags that users may not expect, to the output of a verb that
// defines the tags: a sentence each under "notes", and as NOTE in the text. Reads the cluster's
// layout. Blocks.
Status AddTagNotes(BlockingCoordinator& registry, const std::vector<TagDefinition>& tags,
                   Output& output);

}  // namespace firn
