#pragma once

#include "common/tag/tag_definition.h"

namespace firn {

// Returns whether edits can turn `before` into `after` although ids may have been issued: both have
// the same form (FormOf), or would have it if `before` had buffer = owner, too. No edit takes the
// owner away. CheckEdit permits less in one edit.
bool MayBecome(const TagDefinition& before, const TagDefinition& after);

// Returns whether ids of both definitions look alike: the forms are the same, or differ only in the
// owner. After a loss of the registry's data, a used tag can be without its owner.
bool LookAlike(const TagDefinition& a, const TagDefinition& b);

}  // namespace firn
