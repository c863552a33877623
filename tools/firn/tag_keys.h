#pragma once

#include <string>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Every key that a tag may have, a line each: what it says, its values and its default, and what
// fixes it. For the help of `tags create` and `tags set`.
std::string DescribeTagKeys();

// kInvalid, in words, where `tag` names a strategy or a plugin that is not Firn's own, or a time
// zone that does not load here. Servers may have it all the same.
Status CheckNames(const TagDefinition& tag);

}  // namespace firn
