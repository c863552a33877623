#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// Dates and times for people. Pure functions of their arguments: they use no time zone, locale or
// environment of the process, so any thread may call them.
//
// The calendar is the proleptic Gregorian one without leap seconds, years 0 to 9999.

// A date and time in UTC, or in UTC plus an offset.
struct CivilTime {
  std::chrono::year_month_day date;
  int hour = 0;         // 0 to 23
  int minute = 0;       // 0 to 59
  int second = 0;       // 0 to 59
  int millisecond = 0;  // 0 to 999

  friend constexpr bool operator==(const CivilTime&, const CivilTime&) = default;
};

inline constexpr WallMs kCalendarBegin{-62'167'219'200'000};  // 0000-01-01
inline constexpr WallMs kCalendarEnd{253'402'300'800'000};    // 10000-01-01, the first without

constexpr bool InCalendar(WallMs t) { return kCalendarBegin <= t && t < kCalendarEnd; }

// Returns the date and time at `t` of a clock that is `offset` ahead of UTC. `t` must be in the
// calendar, and the offset below two days.
CivilTime CivilAt(WallMs t, std::chrono::seconds offset = {});

// Returns the time at which a clock that is `offset` ahead of UTC shows `civil`.
WallMs FromCivil(const CivilTime& civil, std::chrono::seconds offset = {});

// Returns "2024-01-01T00:00:00.000Z", always with milliseconds; outside the calendar the number of
// milliseconds, "-9223372036854775808 ms".
std::string FormatRfc3339(WallMs t);

// Parses an RFC 3339 date and time with any offset. Ignores fractions below a millisecond. Refuses
// leap seconds, invalid dates, and dates outside the calendar.
Result<WallMs> ParseRfc3339(std::string_view text);

// Parses a date such as "2024-01-01"; returns its midnight UTC.
Result<WallMs> ParseDate(std::string_view text);

}  // namespace firn
