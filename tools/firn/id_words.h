#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "common/tag/tag_definition.h"

namespace firn {

// The layout and the split of its machine bits that --layout and --rack_bits name.
struct LayoutChoice {
  Layout layout;
  RackSplit split;
};
Result<LayoutChoice> ChosenLayout();

// The ids that a verb's words are, written as --form says; kInvalid names the word that is none.
Result<std::vector<int64_t>> IdsIn(const std::vector<std::string>& words);

// Likewise the ids of a tag of a cluster with that layout: its texts, unless --form is said, and of
// an obfuscated tag those behind them, by the key in --key_dir.
Result<std::vector<int64_t>> IdsOfTag(const TagDefinition& tag, const Layout& layout,
                                      const std::vector<std::string>& words);

}  // namespace firn
