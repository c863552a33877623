#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/units.h"
#include "common/text/time_zone.h"

namespace firn {

// How long the counter of a dated tag goes on before it begins again.
enum class Period : uint8_t { kDay, kMonth, kYear };

// "day", "month" and "year", as files spell them; nothing for any other name.
std::string_view PeriodName(Period period);
std::optional<Period> PeriodNamed(std::string_view name);

// Numbers that are a date, then a counter from 1: with a period of a day and six digits
// 20261122000001 is the first number of that day.
//
//     P           a period as a number: 20261122, 202611 or 2026
//     P x scale   (scale is 10^digits) is no number of any tag; those of P follow it, scale - 1
//
// Every number of a later period is larger than all of an earlier one, so they stay unique and
// rising in one space. A value.
class DatedNumbers {
 public:
  // 18 digits in all, so that every sum of them fits.
  static constexpr int DigitsMax(Period period) { return 18 - WidthOf(period); }

  // `digits` of the counter: 1 to DigitsMax.
  DatedNumbers(Period period, int digits);

  int digits() const { return digits_; }
  int period_width() const { return WidthOf(period_); }
  int64_t scale() const { return scale_; }

  int64_t PeriodOf(int64_t number) const { return number / scale_; }
  int64_t CountOf(int64_t number) const { return number % scale_; }

  // The numbers of `period`: [First, End).
  int64_t First(int64_t period) const { return period * scale_ + 1; }
  int64_t End(int64_t period) const { return (period + 1) * scale_; }

  // Whether the calendar has it; years 1 to 9998.
  bool IsPeriod(int64_t period) const { return FirstDay(period).has_value(); }
  std::optional<std::chrono::sys_days> FirstDay(int64_t period) const;

  // The period in which the clocks of `zone` are at `t`. What they show beyond the calendar's
  // first and last years is the first or the last of them.
  int64_t PeriodAt(WallMs t, const TimeZone& zone) const;

  // When `period`, which there is, is over: the clocks of `zone` go from it, or from one before it,
  // to a later one. `t` itself when they show a later one then. A zone whose clocks go back over
  // midnight has two such moments, and this is one of them.
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
