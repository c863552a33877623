#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Converts what users of a tag see back to ids: the tag's texts, and the numbers by which its
// plugin `obfuscate` replaces ids.

// Returns the id in `text`, parsed by the tag's template in a cluster with that layout.
Result<int64_t> ShownId(const TagDefinition& tag, const Layout& layout, std::string_view text);

// Returns the id that the tag shows as `shown`. For an obfuscated tag this requires its key, in the
// folder `key_dir` as on servers: kDenied without the folder, kInvalid if the key there differs.
Result<int64_t> PlainId(const TagDefinition& tag, int64_t shown, const std::string& key_dir);

// Sets the obfuscate.check of an obfuscated tag that has none, from its key in `key_dir`. Does
// nothing for other tags, and without a folder.
Status FillKeyCheck(const std::string& key_dir, TagDefinition& tag);

}  // namespace firn
