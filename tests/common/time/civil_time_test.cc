#include "common/time/civil_time.h"

#include <ctime>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

TEST(CivilTimeTest, ReadsAndWritesRfc3339) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"1970-01-01T00:00:00.000Z", 0},
      {"2024-01-01T00:00:00.000Z", 1704067200000},
      {"2010-11-04T01:42:54.657Z", 1288834974657},
      {"2024-02-29T23:59:59.999Z", 1709251199999},
      {"1969-12-31T23:59:59.999Z", -1},
      {"0000-01-01T00:00:00.000Z", kCalendarBegin.ms()},
      {"9999-12-31T23:59:59.999Z", kCalendarEnd.ms() - 1},
  };
  for (const auto& [text, ms] : cases) {
    EXPECT_EQ(FormatRfc3339(WallMs(ms)), text);
    EXPECT_EQ(ParseRfc3339(text).value(), WallMs(ms));
  }
}

TEST(CivilTimeTest, ReadsOtherSpellingsOfRfc3339) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"2024-01-01t00:00:00z", 1704067200000},
      {"2024-01-01 01:00:00+01:00", 1704067200000},
      {"2023-12-31T19:30:00-04:30", 1704067200000},
      {"2024-01-01T00:00:00.5Z", 1704067200500},
      {"2024-01-01T00:00:00.123456789Z", 1704067200123},
  };
  for (const auto& [text, ms] : cases) EXPECT_EQ(ParseRfc3339(text).value(), WallMs(ms)) << text;
}

TEST(CivilTimeTest, RefusesInvalidDates) {
  for (const char* text : {"",
                           "2024",
                           "2024-01-01",
                           "2024-01-01T00:00:00",
                           "2024-13-01T00:00:00Z",
                           "2023-02-29T00:00:00Z",
                           "2024-00-01T00:00:00Z",
                           "2024-01-00T00:00:00Z",
                           "2024-01-01T24:00:00Z",
                           "2024-01-01T00:60:00Z",
                           "2024-01-01T00:00:60Z",
                           "2024-01-01T00:00:00.Z",
                           "2024-01-01T00:00:00+24:00",
                           "2024-01-01T00:00:00+00:60",
                           "2024-01-01T00:00:00+0000",
                           "2024-01-01T00:00:00Zx",
                           " 2024-01-01T00:00:00Z",
                           "20240-01-01T00:00:00Z",
                           "-024-01-01T00:00:00Z",
                           "0000-01-01T00:00:00+00:01"}) {
    EXPECT_EQ(ParseRfc3339(text).code(), Code::kInvalid) << text;
  }
  for (const char* text : {"", "2024-1-1", "2023-02-29", "2024-01-01 ", "24-01-01"}) {
    EXPECT_EQ(ParseDate(text).code(), Code::kInvalid) << text;
  }
}

TEST(CivilTimeTest, EveryPrefixOfATimeIsRefused) {
  const std::string whole = "2024-01-01T00:00:00.000+01:00";
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ParseRfc3339(whole.substr(0, n)).ok()) << n;
  }
}

TEST(CivilTimeTest, ShowsTimesWithoutADateAsCounts) {
  EXPECT_EQ(FormatRfc3339(kCalendarEnd), "253402300800000 ms");
  EXPECT_EQ(FormatRfc3339(WallMs(INT64_MIN)), "-9223372036854775808 ms");
}

TEST(CivilTimeTest, AgreesWithTheCLibraryAndWithItself) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t span = static_cast<uint64_t>((kCalendarEnd - kCalendarBegin).count());
    const WallMs t = kCalendarBegin + Milliseconds(static_cast<int64_t>(entropy.Below(span)));
    const CivilTime civil = CivilAt(t);
    ASSERT_EQ(FromCivil(civil), t);
    ASSERT_EQ(ParseRfc3339(FormatRfc3339(t)).value(), t);
    const time_t seconds = (t.ms() - civil.millisecond) / 1000;
    std::tm expected{};
    ASSERT_NE(gmtime_r(&seconds, &expected), nullptr);
    ASSERT_EQ(int{civil.date.year()}, expected.tm_year + 1900);
    ASSERT_EQ(unsigned{civil.date.month()}, static_cast<unsigned>(expected.tm_mon + 1));
    ASSERT_EQ(unsigned{civil.date.day()}, static_cast<unsigned>(expected.tm_mday));
    ASSERT_EQ(civil.hour * 3600 + civil.minute * 60 + civil.second,
              expected.tm_hour * 3600 + expected.tm_min * 60 + expected.tm_sec);
  }
}

}  // namespace
}  // namespace firn
