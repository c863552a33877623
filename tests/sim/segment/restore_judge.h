#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/tag/tag_definition.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/backup.h"
#include "tests/sim/segment/segment_oracle.h"

namespace firn {

// What the tags of a restored registry may come from.
struct RestoreSources {
  std::map<std::string, TagDefinition> last{};     // the operator's
  std::map<std::string, TagDefinition> deleted{};  // likewise
  std::vector<Backup> documents{};
  TagListing before{};              // the registry as it was when the first run began
  std::set<std::string> issued{};   // tags with numbers at that time
  std::set<std::string> defined{};  // those of which the last run was given the operator's
};

// Throws a SegmentViolation at the first tag that a restore has lost or changed:
//  * A tag of the operator's must exist. Only one without numbers may remain deleted.
//  * A tag whose numbers were issued before the first run keeps its form, and so does each tag that
//    is `defined`.
//  * A definition is that of a source: the operator's, or one in the registry or a document. No
//    document replaces one that is `defined`.
void CheckRestored(const TagListing& after, const RestoreSources& from, NumberOracle& oracle);

}  // namespace firn
