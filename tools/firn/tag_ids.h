#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"

namespace firn {

// What stands behind the ids that users of a tag see: its texts, and the numbers that its plugin
// `obfuscate` puts in their places.

// The id that `text` shows, by the tag's own template in a cluster of that layout.
Result<int64_t> ShownId(const TagDefinition& tag, const Layout& layout, std::string_view text);

// The id that the tag shows as `shown`. Of an obfuscated tag: by its key, which is in `key_dir` as
// servers have it. kDenied without that folder, kInvalid when the key there is another one.
Result<int64_t> PlainId(const TagDefinition& tag, int64_t shown, const std::string& key_dir);

}  // namespace firn
