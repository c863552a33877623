#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/id/explain.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/tag/tag_definition.h"
#include "tools/firn/output.h"

namespace firn {

// The layout that --layout names, and its machine bits split by --rack_bits.
struct LayoutChoice {
  Layout layout;
  RackSplit split;
};
Result<LayoutChoice> ChosenLayout();

// Parses a verb's words as ids in the notation --form. kInvalid names the first invalid word.
Result<std::vector<int64_t>> IdsIn(const std::vector<std::string>& words);

// Parses the words as ids of `tag`, in a cluster with that layout: in the tag's text form, unless
// --form is given. Ids of an obfuscated tag are revealed by the key in --key_dir.
Result<std::vector<int64_t>> IdsOfTag(const TagDefinition& tag, const Layout& layout,
                                      const std::vector<std::string>& words);

// What a reader of an id that was read like this must know: it may be of another layout or tag, for
// its time has not come, or lies where the layout's time begins. Empty otherwise.
std::string TimeNote(const Explanation& e, WallMs now);

// Adds `note`, unless empty, to what the output said last.
void AddNote(Output& output, const std::string& note);

}  // namespace firn
