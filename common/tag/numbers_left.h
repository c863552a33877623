#pragma once

#include <cstdint>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"

namespace firn {

// Where the numbers of a tag with a ledger end. Servers, the audit and restores all use these.

// Returns the first number that the tag cannot issue: the first for which an obfuscated tag has no
// digits, or the end of 63 bits.
int64_t NumbersEnd(const TagDefinition& tag);
// Likewise, for a tag that would continue at `next`. A dated tag ends with the period in which
// `next` lies or which it has used up.
int64_t NumbersEndFrom(const TagDefinition& tag, int64_t next);

// Returns kExhausted, with the limit and the remedy, if the tag cannot issue `next` or more.
Status CheckNumbersLeft(const TagDefinition& tag, int64_t next);

// A tag that has no numbers left, or few.
struct NumbersNote {
  bool none = false;
  std::string what{}, fix{};
};

// Returns a note if a tag with a ledger has no numbers left or less than a tenth, or if a dated tag
// has used up the period of `now`; otherwise nullopt.
std::optional<NumbersNote> NoteNumbersLeft(const TagDefinition& tag, WallMs now);

}  // namespace firn
