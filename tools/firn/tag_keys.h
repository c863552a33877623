#pragma once

#include <string>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Returns a line for each key of a tag: its meaning, values and default, and what fixes it. For the
// help of `tags create` and `tags set`.
std::string DescribeTagKeys();

// Returns kInvalid if `tag` names a strategy or plugin that is not part of Firn, or a time zone
// that this host cannot load. Servers may still have it.
Status CheckNames(const TagDefinition& tag);

}  // namespace firn
