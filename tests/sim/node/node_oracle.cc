#include "tests/sim/node/node_oracle.h"

#include <utility>

#include "tests/sim/violation.h"

namespace firn {

void NodeOracle::Define(const TagDefinition& tag, std::string text_of_zero) {
  tags_[tag.name] = {.defined = tag, .text_of_zero = std::move(text_of_zero), .numbers = {}};
}

void NodeOracle::Record(const std::string& tag, int64_t id, const std::string& text) {
  const auto known = tags_.find(tag);
  if (known == tags_.end())
    throw Violation(2, "tag " + tag + ", which was never defined, was served");
  Tag& served = known->second;
  if (served.defined.disabled) throw Violation(2, "tag " + tag + ", which is disabled, was served");
  if (text != served.text_of_zero) {
    throw Violation(2, "tag " + tag + " was issued as " + text + ", not " + served.text_of_zero);
  }
  auto& given = served.defined.strategy == "segment" ? served.numbers : snowflakes_;
  if (!given.insert(id).second) {
    throw Violation(1, "id " + std::to_string(id) + " of tag " + tag + " was issued twice");
  }
  ++ids_;
}

}  // namespace firn
