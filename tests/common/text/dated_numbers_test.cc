#include "common/text/dated_numbers.h"

#include <tuple>

#include <gtest/gtest.h>

#include "common/time/civil_time.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

TimeZone Zone(std::string_view name) { return TimeZone::Load(name).value(); }

TEST(DatedNumbersTest, ANumberIsADateAndACounter) {
  const DatedNumbers days(Period::kDay, 6);
  EXPECT_EQ(days.First(20261122), 20261122000001);
  EXPECT_EQ(days.End(20261122), 20261123000000);
  EXPECT_EQ(days.PeriodOf(20261122000001), 20261122);
  EXPECT_EQ(days.CountOf(20261122000001), 1);
  EXPECT_EQ(DatedNumbers(Period::kMonth, 4).First(202611), 2026110001);
  EXPECT_EQ(DatedNumbers(Period::kYear, 3).First(2026), 2026001);
}

TEST(DatedNumbersTest, TheLargestNumbersFit) {
  for (const Period period : {Period::kDay, Period::kMonth, Period::kYear}) {
    const DatedNumbers numbers(period, DatedNumbers::DigitsMax(period));
    const int64_t last = numbers.PeriodAt(kCalendarEnd, Zone("UTC"));
    EXPECT_TRUE(numbers.IsPeriod(last));
    EXPECT_EQ(numbers.PeriodOf(numbers.End(last) - 1), last);
    EXPECT_LT(numbers.End(last), int64_t{1'000'000'000'000'000'000});
  }
}

TEST(DatedNumbersTest, KnowsTheCalendar) {
  const DatedNumbers days(Period::kDay, 6), months(Period::kMonth, 6), years(Period::kYear, 6);
  for (const int64_t day : {20240229, 20261231, 10101, 99981231}) EXPECT_TRUE(days.IsPeriod(day));
  for (const int64_t day : {int64_t{0}, int64_t{-1}, int64_t{20230229}, int64_t{20261301},
                            int64_t{20261100}, int64_t{99990101}, int64_t{1} << 62}) {
    EXPECT_FALSE(days.IsPeriod(day)) << day;
  }
  EXPECT_TRUE(months.IsPeriod(202612) && years.IsPeriod(2026));
  EXPECT_FALSE(months.IsPeriod(202613) || years.IsPeriod(9999) || years.IsPeriod(0));
}

TEST(DatedNumbersTest, UsesThePeriodOfTheZonesClocks) {
  const DatedNumbers days(Period::kDay, 6), months(Period::kMonth, 6), years(Period::kYear, 6);
  const WallMs new_year = At("2026-12-31T23:30:00Z");
  EXPECT_EQ(days.PeriodAt(new_year, Zone("UTC")), 20261231);
  EXPECT_EQ(days.PeriodAt(new_year, Zone("Europe/Berlin")), 20270101);
  EXPECT_EQ(months.PeriodAt(new_year, Zone("Europe/Berlin")), 202701);
  EXPECT_EQ(years.PeriodAt(new_year, Zone("Asia/Shanghai")), 2027);
  EXPECT_EQ(days.PeriodAt(WallMs(INT64_MIN), Zone("UTC")), 10102);
  EXPECT_EQ(days.PeriodAt(WallMs(INT64_MAX), Zone("UTC")), 99981230);
}

// The cases contain days of 23, 24 and 25 hours, midnights that do not exist or occur twice, and a
// skipped date.
TEST(DatedNumbersTest, EndsWhenTheClocksShowALaterDate) {
  const std::tuple<const char*, int64_t, const char*, const char*> cases[] = {
      {"UTC", 20261122, "2026-11-22T10:00:00Z", "2026-11-23T00:00:00Z"},
      {"Europe/Berlin", 20260328, "2026-03-28T12:00:00Z", "2026-03-28T23:00:00Z"},
      {"Europe/Berlin", 20260329, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
      {"Europe/Berlin", 20261025, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
      {"America/Sao_Paulo", 20171014, "2017-10-14T12:00:00Z", "2017-10-15T03:00:00Z"},
      {"America/Sao_Paulo", 20180217, "2018-02-17T12:00:00Z", "2018-02-18T03:00:00Z"},
      {"Asia/Beirut", 20220326, "2022-03-26T12:00:00Z", "2022-03-26T22:00:00Z"},
      {"Pacific/Apia", 20111229, "2011-12-29T12:00:00Z", "2011-12-30T10:00:00Z"},
      {"-04:30", 20261122, "2026-11-22T10:00:00Z", "2026-11-23T04:30:00Z"},
  };
  const DatedNumbers days(Period::kDay, 6);
  for (const auto& [zone, day, now, end] : cases) {
    const WallMs over = days.EndOf(day, At(now), Zone(zone));
    EXPECT_EQ(FormatRfc3339(over), FormatRfc3339(At(end))) << zone << " " << day;
    EXPECT_LE(days.PeriodAt(over - Milliseconds(1), Zone(zone)), day) << zone;
    EXPECT_GT(days.PeriodAt(over, Zone(zone)), day) << zone;
  }
}

TEST(DatedNumbersTest, MonthsAndYearsEndAsTheirLastDayDoes) {
  const WallMs now = At("2026-11-22T10:00:00Z");
  EXPECT_EQ(DatedNumbers(Period::kMonth, 6).EndOf(202611, now, Zone("UTC")),
            At("2026-12-01T00:00:00Z"));
  EXPECT_EQ(DatedNumbers(Period::kYear, 6).EndOf(2026, now, Zone("Europe/Berlin")),
            At("2026-12-31T23:00:00Z"));
}

TEST(DatedNumbersTest, APastPeriodEndsNowAndAFutureOneAtItsEnd) {
  const DatedNumbers days(Period::kDay, 6);
  const WallMs now = At("2026-11-22T10:00:00Z");
  EXPECT_EQ(days.EndOf(20261120, now, Zone("UTC")), now);
  EXPECT_EQ(days.EndOf(20261130, now, Zone("UTC")), At("2026-12-01T00:00:00Z"));
}

}  // namespace
}  // namespace firn
