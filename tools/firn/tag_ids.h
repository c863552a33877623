#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Converts ids as users see them back to ids: the tag's texts, and the numbers that its plugin
// `obfuscate` shows in place of ids.

// Returns the id in `text`, parsed by the tag's template in a cluster with that layout.
Result<int64_t> ShownId(const TagDefinition& tag, const Layout& layout, std::string_view text);

// Returns the id that the tag shows as `shown`. For an obfuscated tag, reads its key from the
// folder `key_dir`, as servers do: kDenied if `key_dir` is empty, kInvalid if the folder contains
// another key.
Result<int64_t> PlainId(const TagDefinition& tag, int64_t shown, const std::string& key_dir);

// If an obfuscated tag has no obfuscate.check, computes it from the tag's key in `key_dir`. Does
// nothing for other tags, or if `key_dir` is empty.
Status FillKeyCheck(const std::string& key_dir, TagDefinition& tag);

}  // namespace firn
