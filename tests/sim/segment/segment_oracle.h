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
// It also knows in which form a tag's ids were issued: no tag has two forms. Ids of a clock are
// even before they are obfuscated, and odd afterwards.
//
// For tags without a buffer it also knows the highest number of an answered call: a call that
// begins afterwards must get larger ones.
class NumberOracle {
 public:
  // The number above which a call of the tag must be answered.
  int64_t Highest(const std::string& tag) { return tags_[tag].highest; }

  void Record(const std::string& tag, int64_t number, int64_t beyond);

  // `text`: the text of 0 in the tag's form, as the served call has it.
  void RecordText(const std::string& tag, const std::string& text);

  // The operator has defined the tag or, without a name, permits all tags to be served.
  void Define(const std::string& tag = "") { defined_.insert(tag); }
  // The operator has deleted the tag: none of its numbers may be issued, unless the registry goes
  // back.
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
