#include "server/issue/snowflake/layout_end.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/tag/obfuscated_end.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class LayoutEndTest : public testing::Test {
 protected:
  LayoutEndTest() : clock_(Layout::Firn().end() - 370 * kADay) {}
  std::optional<std::string> Check() { return watch_.Check(clock_.Read()); }

  VirtualClock clock_;
  LayoutEndWatch watch_{Layout::Firn()};
};

TEST_F(LayoutEndTest, ReportsTheRemainingDays) {
  EXPECT_EQ(DaysLeft(Layout::Firn(), clock_.Wall()), 370);
  EXPECT_EQ(DaysLeft(Layout::Firn(), Layout::Firn().end()), 0);
}

TEST_F(LayoutEndTest, IsSilentWithMoreThanAYearLeft) { EXPECT_EQ(Check(), std::nullopt); }

TEST_F(LayoutEndTest, WarnsOnceADayInTheLastYear) {
  clock_.Advance(6 * kADay);
  EXPECT_THAT(Check().value_or(""), testing::HasSubstr("ends in 364 days"));
  EXPECT_EQ(Check(), std::nullopt);
  clock_.Advance(kADay);
  EXPECT_THAT(Check().value_or(""), testing::HasSubstr("363 days"));
}

TEST_F(LayoutEndTest, WarnsOfAnObfuscatedTagThatEndsEarlier) {
  TagDefinition tag{.name = "order", .strategy = "snowflake", .plugins = {"obfuscate"}};
  tag.obfuscate_width = 18;
  const WallMs end = ObfuscatedEnd(tag, Layout::Firn()).value_or(WallMs());
  clock_.StepWall(end - 10 * kADay - clock_.Wall());
  EXPECT_EQ(Check(), std::nullopt);
  watch_.Note(tag);
  EXPECT_THAT(Check().value_or(""),
              testing::HasSubstr("ids of tag 'order' outgrow its obfuscate.width in 10 days"));
  EXPECT_EQ(Check(), std::nullopt);
  clock_.Advance(kADay);
  EXPECT_THAT(Check().value_or(""), testing::HasSubstr("in 9 days"));
  tag.obfuscate_width = 19;
  watch_.Note(tag);
  clock_.Advance(kADay);
  EXPECT_EQ(Check(), std::nullopt);
}

}  // namespace
}  // namespace firn
