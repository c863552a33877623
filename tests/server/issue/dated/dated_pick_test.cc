#include "server/issue/dated/dated_pick.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

const WallMs kNoon = At("2026-11-22T12:00:00Z");

// The tag with its ledger at `high`.
TagDefinition Order(int64_t high = 0) {
  TagDefinition tag{.name = "order", .strategy = "dated"};
  tag.high = high;
  return tag;
}

Range Picked(const TagDefinition& tag, int64_t size, WallMs now) {
  const Result<Range> range = PickDated(tag, size, now);
  EXPECT_TRUE(range.ok()) << range.status();
  return range.value_or({});
}

TEST(DatedPickTest, EachPeriodBeginsWithOne) {
  EXPECT_EQ(Picked(Order(), 100, kNoon), (Range{20261122000001, 20261122000101}));
  EXPECT_EQ(Picked(Order(20261122000101), 100, kNoon), (Range{20261122000101, 20261122000201}));
  EXPECT_EQ(Picked(Order(20261121000777), 100, kNoon), (Range{20261122000001, 20261122000101}));
}

TEST(DatedPickTest, UsesTheDateInTheTagsZone) {
  TagDefinition tag = Order();
  tag.zone = "Asia/Tokyo";
  EXPECT_EQ(Picked(tag, 1, At("2026-11-22T14:59:59.999Z")).begin, 20261122000001);
  EXPECT_EQ(Picked(tag, 1, At("2026-11-22T15:00:00Z")).begin, 20261123000001);
}

// Covers a clock that went back, and a zone where it is still the day before.
TEST(DatedPickTest, StaysInALaterPeriodThatTheLedgerHasReached) {
  EXPECT_EQ(Picked(Order(20261123000005), 2, kNoon), (Range{20261123000005, 20261123000007}));
  EXPECT_EQ(PickDated(Order(20261124000000), 2, kNoon).code(), Code::kExhausted);
}

TEST(DatedPickTest, NoRangeCrossesTheEndOfItsPeriod) {
  TagDefinition tag = Order(20261122999990);
  EXPECT_EQ(Picked(tag, 1'000, kNoon), (Range{20261122999990, 20261123000000}));
  tag.high = 20261123000000;
  EXPECT_EQ(PickDated(tag, 1, kNoon).code(), Code::kExhausted);
  EXPECT_EQ(Picked(tag, 1, At("2026-11-23T00:00:00Z")).begin, 20261123000001);
}

TEST(DatedPickTest, TakesAHundredthOfTheRestOrTheStep) {
  TagDefinition tag = Order();
  EXPECT_EQ(Picked(tag, 1'000'000, kNoon).size(), 9'999);
  tag.step = 20'000;
  EXPECT_EQ(Picked(tag, 1'000'000, kNoon).size(), 20'000);
}

TEST(DatedPickTest, ContinuesFromTheStart) {
  TagDefinition tag = Order();
  tag.start = 20261122004711;
  EXPECT_EQ(Picked(tag, 1, kNoon).begin, 20261122004711);
  EXPECT_EQ(Picked(tag, 1, kNoon + std::chrono::hours(24)).begin, 20261123000001);
  tag.start = 20261123000001;
  EXPECT_THAT(PickDated(tag, 1, kNoon).status().message(),
              HasSubstr("the current period is 20261122"));
}

TEST(DatedPickTest, EntersAtMostOnePeriodWhileTheClocksDisagree) {
  const TagDefinition today = Order(20261122000005);
  const auto days = [](int n) { return kNoon + kADay * n; };
  EXPECT_EQ(PickDated(today, 1, days(1), kNoon)->begin, 20261123000001);
  EXPECT_EQ(PickDated(today, 1, days(-300), kNoon)->begin, 20261122000005);
  EXPECT_EQ(PickDated(Order(20261101000005), 1, kNoon, days(-1))->begin, 20261122000001)
      << "the local date counts as well";
  for (const TagDefinition& tag : {today, Order()}) {
    const Result<Range> leap = PickDated(tag, 1, days(300), kNoon);
    EXPECT_EQ(leap.code(), Code::kUnavailable);
    EXPECT_THAT(leap.status().message(), HasSubstr("no number is dated 20270918"));
    EXPECT_TRUE(PickDated(tag, 1, days(300)).ok()) << "both clocks agree";
  }
}

TEST(DatedPickTest, RefusesALongLeapWithoutAnOperator) {
  TagDefinition tag = Order(20261122000005);
  EXPECT_TRUE(PickDated(tag, 1, kNoon + std::chrono::days(400)).ok());
  const WallMs late = kNoon + std::chrono::days(401);
  const Result<Range> leap = PickDated(tag, 1, late);
  EXPECT_EQ(leap.code(), Code::kInvalid);
  EXPECT_THAT(leap.status().message(), HasSubstr("set start=20271228000001"));
  tag.start = 20271228000001;
  EXPECT_EQ(Picked(tag, 1, late).begin, 20271228000001);
}

TEST(DatedPickTest, RefusesALedgerWithoutADate) {
  for (const int64_t high : {int64_t{4711}, int64_t{20261332000001}, INT64_MAX}) {
    EXPECT_EQ(PickDated(Order(high), 1, kNoon).code(), Code::kInvalid) << high;
  }
  EXPECT_EQ(PickDated(Order(1), 1, kNoon).value().begin, 20261122000001);
}

}  // namespace
}  // namespace firn
