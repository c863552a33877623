#include "tests/sim/segment/period_oracle.h"

#include <algorithm>

#include "tests/sim/segment/segment_oracle.h"
#include "tests/sim/segment/segment_violation.h"

namespace firn {

void PeriodOracle::NoteClock() {
  const int64_t ahead = registry_.Wall().ms() - servers_.Boot().ms();
  least_ms_ = std::min(least_ms_, ahead);
  const bool contradicted = registry_.Wall() - servers_.Wall() > kContradicted;
  if (contradicted) {
    contradicted_ = true;
  } else {
    most_ms_ = std::max(most_ms_, ahead);
  }
}

void PeriodOracle::Define(const TagDefinition& tag) {
  if (!tag.Dated()) return;
  Tag& known = tags_[tag.name];
  known.tag = tag;
  known.zones.insert(tag.zone);
  known.grace = std::max(known.grace, tag.period_grace);
}

void PeriodOracle::Record(const std::string& name, int64_t number) {
  const auto found = tags_.find(name);
  // A process that has not read the tag's definition may serve it as an undefined tag.
  if (found == tags_.end() || number >= NumberOracle::kClockIds) return;
  NoteClock();  // it may drift
  const Tag& known = found->second;
  const DatedNumbers numbers = *known.tag.Dated();
  const int64_t boot = servers_.Boot().ms();
  const WallMs late = WallMs(boot + least_ms_) - kTelling - std::chrono::seconds(known.grace);
  const WallMs early(boot + most_ms_);
  int64_t first = INT64_MAX, last = 0;
  for (const std::string& name_of : known.zones) {
    const TimeZone zone = TimeZone::Load(name_of).value();
    first = std::min(first, numbers.PeriodAt(late, zone));
    int64_t latest = numbers.PeriodAt(early, zone);
    if (contradicted_) latest = numbers.PeriodAt(numbers.EndOf(latest, early, zone), zone);
    last = std::max(last, latest);
  }
  const int64_t period = numbers.PeriodOf(number);
  if (period < first || period > last || numbers.CountOf(number) == 0) {
    throw SegmentViolation("number " + std::to_string(number) + " of tag " + name +
                           " was issued in a wrong period: it was " + std::to_string(last));
  }
  periods_.insert(period);
}

}  // namespace firn
