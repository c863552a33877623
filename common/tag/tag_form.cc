#include "common/tag/tag_form.h"

namespace firn {

bool MayBecome(const TagDefinition& before, const TagDefinition& after) {
  TagDefinition edited = before;
  if (after.buffer == TagBuffer::kOwner) edited.buffer = after.buffer;
  return FormOf(edited) == FormOf(after);
}

bool HasBecome(const TagDefinition& before, const TagDefinition& after) {
  return FormOf(before) != FormOf(after) && MayBecome(before, after) && after.MayHaveIssued() &&
         after.NextBegin() >= before.NextBegin();
}

}  // namespace firn
