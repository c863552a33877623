#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/units.h"
#include "common/text/time_zone.h"

namespace firn {

// The time after which the counter of a dated tag restarts.
enum class Period : uint8_t { kDay, kMonth, kYear };

// Parses "day", "month" and "year", as in files; nullopt for any other name.
std::string_view PeriodName(Period period);
std::optional<Period> PeriodNamed(std::string_view name);

// Numbers that consist of a date and a counter from 1: with a period of a day and six digits,
// 20261122000001 is the first number of that day.
//
//     P           a period as a number: 20261122, 202611 or 2026
//     P x scale   (scale is 10^digits) is not used; the scale - 1 numbers of P follow it
//
// Every number of a later period is larger than all numbers of an earlier one, so numbers are
// unique and rise. A value.
class DatedNumbers {
 public:
  // Numbers have at most 18 digits, so that sums of them do not overflow.
  static constexpr int DigitsMax(Period period) { return 18 - WidthOf(period); }

  // `digits`: number of digits of the counter, 1 to DigitsMax.
  DatedNumbers(Period period, int digits);

  int digits() const { return digits_; }
  int period_width() const { return WidthOf(period_); }
  int64_t scale() const { return scale_; }

  int64_t PeriodOf(int64_t number) const { return number / scale_; }
  int64_t CountOf(int64_t number) const { return number % scale_; }

  // The numbers of `period` are [First, End).
  int64_t First(int64_t period) const { return period * scale_ + 1; }
  int64_t End(int64_t period) const { return (period + 1) * scale_; }

  // Returns whether the calendar has the period; years 1 to 9998.
  bool IsPeriod(int64_t period) const { return FirstDay(period).has_value(); }
  std::optional<std::chrono::sys_days> FirstDay(int64_t period) const;

  // Returns the period that the clocks of `zone` show at `t`. Times outside the calendar count as
  // its first or last period.
  int64_t PeriodAt(WallMs t, const TimeZone& zone) const;

  // Returns a time at which the clocks of `zone` change from `period`, which must exist, or an
  // earlier one to a later one; `t` itself if they show a later period then. A zone whose clocks go
  // back over midnight has two such times; returns one of them.
  WallMs EndOf(int64_t period, WallMs t, const TimeZone& zone) const;

  friend bool operator==(const DatedNumbers&, const DatedNumbers&) = default;

 private:
  static constexpr int WidthOf(Period period) {
    constexpr int kWidths[] = {8, 6, 4};
    return kWidths[static_cast<int>(period)];
  }
  int64_t OfDay(std::chrono::year_month_day day) const;

  Period period_;
  int digits_;
  int64_t scale_ = 1;
};

}  // namespace firn
