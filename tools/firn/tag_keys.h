#pragma once

#include <string>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Returns a line for each key of a tag, for the help of `tags create` and `tags set`: its meaning,
// values and default, and when it can no longer change.
std::string DescribeTagKeys();

// Returns kInvalid if `tag` names a strategy or plugin that is not part of Firn, or a time zone
// that this host cannot load. The servers may support it nevertheless, so --force skips this check.
Status CheckNames(const TagDefinition& tag);

}  // namespace firn
