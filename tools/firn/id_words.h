#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/tag/tag_definition.h"

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

}  // namespace firn
