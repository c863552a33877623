#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"

namespace firn {

// Checks that numbers of dated tags are issued only in permitted periods. Throws a SegmentViolation
// at a number of another period. The registry's clock determines the period, in the tag's zone.
// While the registry's clock is days ahead of the servers' clocks, only one further period may
// begin.
//
// A disconnected process uses the last time and zone that it has read. If the registry's clock is
// set or a tag's zone is edited, earlier clocks and zones therefore remain valid.
class PeriodOracle {
 public:
  // Maximum age of a time when it is read.
  static constexpr Milliseconds kTelling{2'200};

  // Lead of the registry's clock above which the servers' clocks contradict it.
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

  // Records that the tag was deleted. It may be created again with another strategy.
  void Delete(const std::string& name) { tags_.erase(name); }

  // Checks a number that is issued.
  void Record(const std::string& name, int64_t number);

  // The number of checked numbers.
  size_t periods() const { return periods_.size(); }

 private:
  struct Tag {
    TagDefinition tag;
    std::set<std::string> zones{};
    int64_t grace = 0;  // the longest grace that was defined
  };

  const Clock& registry_;
  const Clock& servers_;
  int64_t least_ms_ = INT64_MAX, most_ms_ = INT64_MIN;  // limits of wall minus boot clock so far
  bool contradicted_ = false;  // whether the servers' clocks ever contradicted the registry's
  std::map<std::string, Tag> tags_;
  std::set<int64_t> periods_;
};

}  // namespace firn
