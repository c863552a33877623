#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// Moments as people read them. Pure functions of their arguments: no time zone, locale or
// environment of the process is looked at, so any thread may call them.
//
// The calendar is the proleptic Gregorian one without leap seconds, years 0 to 9999.

// A moment on some clock face: UTC, or UTC moved by a zone's offset.
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

// The clock face `offset` ahead of UTC at `t`. `t` must be in the calendar, and the offset below
// two days.
CivilTime CivilAt(WallMs t, std::chrono::seconds offset = {});

// The moment at which a clock `offset` ahead of UTC shows `civil`.
WallMs FromCivil(const CivilTime& civil, std::chrono::seconds offset = {});

// "2024-01-01T00:00:00.000Z", always with milliseconds; outside the calendar the bare count,
// "-9223372036854775808 ms".
std::string FormatRfc3339(WallMs t);

// The moment of an RFC 3339 date and time, in any offset. Fractions below a millisecond are cut.
// Refused: a leap second, a date that the calendar does not have, anything before or after it.
Result<WallMs> ParseRfc3339(std::string_view text);

// Midnight UTC of "2024-01-01".
Result<WallMs> ParseDate(std::string_view text);

}  // namespace firn
