#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "common/base/status.h"
#include "common/text/time_zone.h"

namespace firn {

// The rule at the end of a zone file, for all years after its table: a POSIX TZ text such as
// "CET-1CEST,M3.5.0,M10.5.0/3". Immutable.
class PosixTz final : public TimeZone::Rules {
 public:
  // kCorrupt if `text` is not such a rule. Zones with summer time must specify its start and end;
  // accepts RFC 8536's hours from -167 to 167.
  static Result<PosixTz> Parse(std::string_view text);

  const TimeZone::LocalType& At(std::chrono::sys_seconds t) const override;

 private:
  friend class PosixTzParser;

  // A day of the year and a time of day, by the clock before the change.
  struct Change {
    enum class Kind { kMonthWeekDay, kDayWithoutLeap, kDayWithLeap };
    Kind kind = Kind::kMonthWeekDay;
    unsigned month = 0, week = 0, weekday = 0;  // of kMonthWeekDay; week 5 is the last
    int day = 0;                                // of the other kinds
    std::chrono::seconds time = std::chrono::hours(2);

    std::chrono::local_seconds In(std::chrono::year year) const;
  };

  TimeZone::LocalType standard_;
  std::optional<TimeZone::LocalType> summer_;
  Change begin_, end_;  // of summer time
};

}  // namespace firn
