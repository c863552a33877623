#pragma once

#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "tools/firn/id_rows.h"

namespace firn {

// What the tags of a Leaf or Tinyid database become in a cluster. Values; it talks to nobody.

// The rows of one database.
struct IdSource {
  std::string name;  // for messages
  std::vector<IdRow> rows;
};

struct TagImport {
  // Each with its step, and both `start` and `high` at the first number that was never given.
  std::vector<TagDefinition> tags;  // by name
  // A sentence for each row that nobody should use as it is; its tag is not among `tags`.
  std::vector<std::string> faults;
};

// Tags that live in several databases become one, above what any of them has given. A tag of
// Tinyid's whose numbers are shared out (`delta`) must have as many rows as there are shares, or a
// database was forgotten.
TagImport PlanImport(IdTable form, const std::vector<IdSource>& sources, const std::string& store);

// `wanted` over what the cluster has: a tag that is there stays as it is defined, and is raised to
// the wanted numbers.
std::vector<TagDefinition> RaiseTags(const std::vector<TagDefinition>& present,
                                     const std::vector<TagDefinition>& wanted);

}  // namespace firn
