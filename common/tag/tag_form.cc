#include "common/tag/tag_form.h"

namespace firn {

bool MayBecome(const TagDefinition& before, const TagDefinition& after) {
  TagDefinition edited = before;
  if (after.buffer == TagBuffer::kOwner) edited.buffer = after.buffer;
  return FormOf(edited) == FormOf(after);
}

bool LookAlike(const TagDefinition& a, const TagDefinition& b) {
  return MayBecome(a, b) || MayBecome(b, a);
}

}  // namespace firn
