#pragma once

#include <string>
#include <vector>

#include "common/tag/tag_definition.h"

namespace firn {

// The change of one tag when a set of definitions replaces another.
struct TagChange {
  enum class Kind { kAdd, kEdit, kSame, kAbsent };  // kAbsent: only in the old set; it is kept

  Kind kind;
  std::string name;
  std::vector<std::string> lines{};  // of an add or edit: "step: 1000 -> 2000"
  Status status{};                   // of an add or edit: whether it is permitted

  friend bool operator==(const TagChange&, const TagChange&) = default;
};

// Returns the changes of all tags in both sets, sorted by name. A tag keeps the ledger that it has
// in `before`: WithLedgerOf is applied before `status` is computed.
std::vector<TagChange> DiffTags(const std::vector<TagDefinition>& before,
                                const std::vector<TagDefinition>& after);

// Returns `after` with the ledger of the tag that it replaces, as an edit writes it.
TagDefinition WithLedgerOf(const TagDefinition& before, TagDefinition after);

// Returns the changes for people:
//     + user: new
//         strategy: snowflake
//     ~ order
//         step: 1000 -> 2000
//     ! bill: refused
//         text: fixed once an id may have been issued ...
//     1 unchanged
//     2 not mentioned and left as they are
std::string DiffText(const std::vector<TagChange>& changes);

}  // namespace firn
