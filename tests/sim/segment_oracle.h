#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>

namespace firn {

// Knows every number of every tag that was ever given out, in any process's life, and throws a
// Violation when one comes twice.
//
// Of tags without a buffer it also knows the highest number of a call that has been answered: a
// call that begins afterwards must get larger ones.
class NumberOracle {
 public:
  // What a call of the tag has to get beyond.
  int64_t Highest(const std::string& tag) { return tags_[tag].highest; }

  void Record(const std::string& tag, int64_t number, int64_t beyond);

  uint64_t given() const { return given_; }

 private:
  struct Tag {
    std::unordered_set<int64_t> numbers;
    int64_t highest = 0;
  };

  std::map<std::string, Tag> tags_;
  uint64_t given_ = 0;
};

}  // namespace firn
