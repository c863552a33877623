#pragma once

#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "tools/firn/id_rows.h"

namespace firn {

// Converts the rows of Leaf or Tinyid databases to tags. Pure functions without network access.

// The rows of one database.
struct IdSource {
  std::string name;  // for messages
  std::vector<IdRow> rows;
};

struct TagImport {
  // `start` and `high` of each are the first number that was never issued.
  std::vector<TagDefinition> tags;  // sorted by name
  // A sentence for each tag whose rows are invalid; the tag is not in `tags`.
  std::vector<std::string> faults;
};

// Merges the rows of a tag from several databases into one tag whose numbers start above every
// number that any of them has issued. A Tinyid tag whose numbers are split among `delta` databases
// must have a row from each of them; otherwise it is a fault.
TagImport PlanImport(IdTable form, const std::vector<IdSource>& sources, const std::string& store);

// Returns the definitions to write for the `wanted` tags. A tag in `present` keeps its definition;
// only its numbers are raised to the wanted ones.
std::vector<TagDefinition> RaiseTags(const std::vector<TagDefinition>& present,
                                     const std::vector<TagDefinition>& wanted);

}  // namespace firn
