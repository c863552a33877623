#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

#include "common/tag/tag_definition.h"

namespace firn {

// Records every id that any node has issued, and how the operator has defined the tags. Throws a
// Violation if an id is issued twice, under a tag that must not be served, or in another form than
// the tag's.
class NodeOracle {
 public:
  void Define(const TagDefinition& tag, std::string text_of_zero);

  // Records an issued id. All snowflake tags share one sequence, and each segment tag has its own.
  // `text`: the text of 0 in the form of the node that served the call.
  void Record(const std::string& tag, int64_t id, const std::string& text);

  uint64_t ids() const { return ids_; }

 private:
  struct Tag {
    TagDefinition defined;
    std::string text_of_zero;
    std::unordered_set<int64_t> numbers;
  };

  std::map<std::string, Tag> tags_;
  std::unordered_set<int64_t> snowflakes_;
  uint64_t ids_ = 0;
};

}  // namespace firn
