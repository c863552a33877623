#include "server/issue/dated/dated_pick.h"

#include <algorithm>

#include "common/base/cat.h"
#include "common/text/time_zone.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

// Returns the period of the last number below `next`; 0 if there is none.
Result<int64_t> PeriodBelow(int64_t next, const TagDefinition& tag, const DatedNumbers& numbers) {
  if (next <= 1) return 0;
  const int64_t period = numbers.PeriodOf(next - 1);
  if (numbers.IsPeriod(period)) return period;
  return Invalid(Cat("tag '", tag.name, "' is at ", next, ", which is not a date and a count"));
}

struct Dispute {
  int64_t reached;
  WallMs registry;
  WallMs local;
};

Status CheckDisputed(const TagDefinition& tag, const DatedNumbers& numbers, const TimeZone& zone,
                     const Dispute& clocks) {
  const int64_t today = numbers.PeriodAt(clocks.registry, zone);
  const int64_t from = std::max(clocks.reached, numbers.PeriodAt(clocks.local, zone));
  const int64_t next = numbers.PeriodAt(numbers.EndOf(from, WallMs(), zone), zone);
  if (today <= next) return {};
  return Unavailable(Cat("tag '", tag.name, "': the registry's clock shows ",
                         FormatRfc3339(clocks.registry), ", the local clock ",
                         FormatRfc3339(clocks.local), ", and no number is dated ", today,
                         " while they disagree; correct the clock that is wrong"));
}

bool LeapsTooFar(const DatedNumbers& numbers, int64_t from, int64_t to) {
  return from != 0 && *numbers.FirstDay(to) - *numbers.FirstDay(from) > kPeriodLeapMax;
}

}  // namespace

Result<Range> PickDated(const TagDefinition& tag, int64_t size, WallMs now,
                        std::optional<WallMs> local) {
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers) return Invalid("tag '" + tag.name + "' is not a dated tag");
  if (size < 1) return Invalid("a range needs a size");
  FIRN_ASSIGN(const TimeZone zone, TimeZone::Load(tag.zone));
  const int64_t today = numbers->PeriodAt(now, zone);
  FIRN_ASSIGN(const int64_t given, PeriodBelow(tag.high, tag, *numbers));
  FIRN_ASSIGN(const int64_t reached, PeriodBelow(tag.NextBegin(), tag, *numbers));
  if (LeapsTooFar(*numbers, reached, today)) {
    return Invalid(Cat("the registry's clock is at ", today, ", and the last numbers are of ",
                       reached, ": if the clock is right, set start=", numbers->First(today)));
  }
  if (local) FIRN_TRY(CheckDisputed(tag, *numbers, zone, {reached, now, *local}));
  const int64_t period = std::max(given, today);
  if (reached > period) {
    return Invalid(
        Cat("its start belongs to the period ", reached, ", but the current period is ", period));
  }
  const int64_t begin = std::max(tag.NextBegin(), numbers->First(period));
  const int64_t left = numbers->End(period) - begin;
  if (left <= 0) return Exhausted(Cat("the numbers of ", period, " are used up"));
  const int64_t most = std::min(left, std::max(tag.step, left / 100));
  return Range{begin, begin + std::min(size, most)};
}

}  // namespace firn
