#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"

namespace firn {

// Knows in which periods numbers of dated tags may go out, and throws a SegmentViolation at one of
// another period. The measure is the registry's own clock, in the tag's zone. While the servers'
// clocks contradict its lead by days, one period may begin, and no more.
//
// A process that is cut off goes by what it was told last: so where the registry's clock is set, or
// a tag's zone is edited, every clock and zone that there has been counts.
class PeriodOracle {
 public:
  // A telling of the time may be so old when it is read.
  static constexpr Milliseconds kTelling{2'200};

  // The servers' clock contradicts the registry's when that leads by more.
  static constexpr Milliseconds kContradicted{2 * 24 * 3'600'000};

  // Both must outlive it.
  PeriodOracle(const Clock& registry, const Clock& servers)
      : registry_(registry), servers_(servers) {
    NoteClock();
  }

  // To be called before and after the registry's clock is set.
  void NoteClock();

  // The operator has defined the tag like this.
  void Define(const TagDefinition& tag);

  // It was deleted, and may be made again as something else.
  void Delete(const std::string& name) { tags_.erase(name); }

  // A number goes out.
  void Record(const std::string& name, int64_t number);

  // Of numbers that went out.
  size_t periods() const { return periods_.size(); }

 private:
  struct Tag {
    TagDefinition tag;
    std::set<std::string> zones{};
    int64_t grace = 0;  // the longest
  };

  const Clock& registry_;
  const Clock& servers_;
  int64_t least_ms_ = INT64_MAX, most_ms_ = INT64_MIN;  // wall less boot, ever
  bool contradicted_ = false;                           // ever
  std::map<std::string, Tag> tags_;
  std::set<int64_t> periods_;
};

}  // namespace firn
