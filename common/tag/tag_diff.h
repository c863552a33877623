#pragma once

#include <string>
#include <vector>

#include "common/tag/tag_definition.h"

namespace firn {

// What becomes of one tag when a set of definitions is put over another one.
struct TagChange {
  enum class Kind { kAdd, kEdit, kSame, kAbsent };  // kAbsent: in the old set only, which keeps it

  Kind kind;
  std::string name;
  std::vector<std::string> lines{};  // of an add or edit: "step: 1000 -> 2000"
  Status status{};                   // of an add or edit: whether it is permitted

  friend bool operator==(const TagChange&, const TagChange&) = default;
};

// Every tag of both sets, by name. The ledger of a tag stays what it is in `before`, whatever
// `after` says: WithLedgerOf has been applied when `status` is computed.
std::vector<TagChange> DiffTags(const std::vector<TagDefinition>& before,
                                const std::vector<TagDefinition>& after);

// `after` with the ledger of the tag that it replaces: what an edit writes.
TagDefinition WithLedgerOf(const TagDefinition& before, TagDefinition after);

// For people:
//     + user: new
//         strategy: snowflake
//     ~ order
//         step: 1000 -> 2000
//     ! bill: refused
//         text: fixed once an id may be out ...
// Unchanged and absent tags are only counted, on the last line.
std::string DiffText(const std::vector<TagChange>& changes);

}  // namespace firn
