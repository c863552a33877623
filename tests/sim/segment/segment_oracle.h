#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

namespace firn {

// Records every number of every tag that any process issues, and throws a Violation if one is
// issued twice.
//
// It also records the form of a tag's ids, and throws if a tag has two forms. Snowflake ids are
// even before they are obfuscated, and odd afterwards.
//
// For tags without a buffer, it also records the highest number of an answered call: a call that
// begins afterwards must get larger numbers.
class NumberOracle {
 public:
  // Returns the number above which the numbers of a call that begins now must be.
  int64_t Highest(const std::string& tag) { return tags_[tag].highest; }

  void Record(const std::string& tag, int64_t number, int64_t beyond);

  // `text`: the text of 0 in the form of the served call.
  void RecordText(const std::string& tag, const std::string& text);

  // Records that the operator has defined the tag or, without a name, permits all tags to be
  // served.
  void Define(const std::string& tag = "") { defined_.insert(tag); }
  // Records that the operator has deleted the tag. None of its numbers may be issued, unless the
  // registry is rolled back.
  void Delete(const std::string& tag) {
    defined_.erase(tag);
    deleted_.insert(tag);
  }
  void WentBack() { defined_.merge(deleted_); }
  bool IsDefined(const std::string& tag) const {
    return defined_.contains(tag) || defined_.contains("");
  }

  static constexpr int64_t kClockIds = int64_t{1} << 61;

  uint64_t given() const { return given_; }

 private:
  struct Tag {
    std::unordered_set<int64_t> numbers;
    int64_t highest = 0;
    std::optional<bool> odd{};
    std::optional<std::string> text{};
  };

  std::map<std::string, Tag> tags_;
  std::set<std::string> defined_;
  std::set<std::string> deleted_;
  uint64_t given_ = 0;
};

}  // namespace firn
