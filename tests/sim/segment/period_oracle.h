#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"

namespace firn {

// Knows in which periods numbers of dated tags may be issued, and throws a SegmentViolation at a
// number of another period. The registry's own clock decides, in the tag's zone. While the servers'
// clocks contradict its lead by days, only one further period may begin.
//
// A process that is cut off uses the last time and zone that it read: so where the registry's clock
// is set, or a tag's zone is edited, every earlier clock and zone counts.
class PeriodOracle {
 public:
  // Maximum age of a time when it is read.
  static constexpr Milliseconds kTelling{2'200};

  // The servers' clock contradicts the registry's if that leads by more.
  static constexpr Milliseconds kContradicted{2 * 24 * 3'600'000};

  // Both must outlive it.
  PeriodOracle(const Clock& registry, const Clock& servers)
      : registry_(registry), servers_(servers) {
    NoteClock();
  }

  // Must be called before and after the registry's clock is set.
  void NoteClock();

  // Records a definition of the tag by the operator.
  void Define(const TagDefinition& tag);

  // The tag was deleted, and may be created again with another strategy.
  void Delete(const std::string& name) { tags_.erase(name); }

  // Checks a number that is issued.
  void Record(const std::string& name, int64_t number);

  // The number of checked numbers.
  size_t periods() const { return periods_.size(); }

 private:
  struct Tag {
    TagDefinition tag;
    std::set<std::string> zones{};
    int64_t grace = 0;  // the longest
  };

  const Clock& registry_;
  const Clock& servers_;
  int64_t least_ms_ = INT64_MAX, most_ms_ = INT64_MIN;  // wall minus boot clock, ever
  bool contradicted_ = false;                           // at any time
  std::map<std::string, Tag> tags_;
  std::set<int64_t> periods_;
};

}  // namespace firn
