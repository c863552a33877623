#include "common/text/dated_numbers.h"

#include <algorithm>
#include <array>

#include "common/time/civil_time.h"

namespace firn {
namespace {

using std::chrono::day;
using std::chrono::days;
using std::chrono::month;
using std::chrono::sys_days;
using std::chrono::year;
using std::chrono::year_month_day;

constexpr std::array<std::string_view, 3> kNames = {"day", "month", "year"};
constexpr int kYearLast = 9998;  // the last one whose end is in the calendar
constexpr sys_days kFirst{year(1) / 1 / 1};
constexpr sys_days kBeyond{year(kYearLast + 1) / 1 / 1};
// No zone is further from UTC.
constexpr Milliseconds kOffsetMost = std::chrono::hours(27);

WallMs MidnightUtc(sys_days date) { return WallMs(Milliseconds(date.time_since_epoch()).count()); }

}  // namespace

std::string_view PeriodName(Period period) { return kNames.at(static_cast<size_t>(period)); }

std::optional<Period> PeriodNamed(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Period>(found - kNames.begin());
}

DatedNumbers::DatedNumbers(Period period, int digits) : period_(period), digits_(digits) {
  for (int i = 0; i < digits; ++i) scale_ *= 10;
}

int64_t DatedNumbers::OfDay(year_month_day date) const {
  const int64_t in_year = int{date.year()};
  if (period_ == Period::kYear) return in_year;
  const int64_t in_month = in_year * 100 + unsigned{date.month()};
  return period_ == Period::kMonth ? in_month : in_month * 100 + unsigned{date.day()};
}

std::optional<sys_days> DatedNumbers::FirstDay(int64_t period) const {
  if (period < 1 || period > int64_t{kYearLast} * 10'000 + 1231) return std::nullopt;
  const bool has_day = period_ == Period::kDay, has_month = period_ != Period::kYear;
  const int64_t in_day = has_day ? period % 100 : 1;
  const int64_t months = has_day ? period / 100 : period;
  const int64_t in_month = has_month ? months % 100 : 1;
  const int64_t in_year = has_month ? months / 100 : months;
  if (in_year < 1 || in_year > kYearLast) return std::nullopt;
  const year_month_day date{year(static_cast<int>(in_year)), month(static_cast<unsigned>(in_month)),
                            day(static_cast<unsigned>(in_day))};
  return date.ok() ? std::optional(sys_days(date)) : std::nullopt;
}

int64_t DatedNumbers::PeriodAt(WallMs t, const TimeZone& zone) const {
  const WallMs inside =
      std::clamp(t, MidnightUtc(kFirst) + kOffsetMost, MidnightUtc(kBeyond) - kOffsetMost);
  return OfDay(zone.CivilAt(inside).date);
}

WallMs DatedNumbers::EndOf(int64_t period, WallMs t, const TimeZone& zone) const {
  const year_month_day first(FirstDay(period).value_or(kFirst));
  year_month_day next = first + std::chrono::years(1);
  if (period_ == Period::kMonth) next = first + std::chrono::months(1);
  if (period_ == Period::kDay) next = sys_days(first) + days(1);
  const WallMs midnight = MidnightUtc(next);
  WallMs before = std::max(t, midnight - kOffsetMost), after = midnight + kOffsetMost;
  if (PeriodAt(before, zone) > period) return before;
  while (after - before > Milliseconds(1)) {
    const WallMs middle = before + (after - before) / 2;
    (PeriodAt(middle, zone) > period ? after : before) = middle;
  }
  return after;
}

}  // namespace firn
