#include "server/store/table/late_tags.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

TEST(LateTagsTest, LateTagsWaitFourTimesAsLongAsTheLastCall) {
  VirtualClock clock(WallMs(0));
  LateTags late(clock);
  const auto give_up = [&](const std::string& tag, Milliseconds took) {
    const BootMs began = clock.Boot();
    clock.Advance(took);
    late.GaveUp(tag, Unavailable("locked " + tag), began);
  };
  give_up("a", Milliseconds(900));
  give_up("b", Milliseconds(1000));
  EXPECT_EQ(late.MayAsk("a"), Unavailable("locked a"));
  EXPECT_EQ(late.MayAsk("b"), Unavailable("locked b"));
  EXPECT_EQ(late.MayAsk("c"), Status());
  clock.Advance(Milliseconds(3999));
  EXPECT_FALSE(late.MayAsk("a").ok());
  clock.Advance(Milliseconds(1));
  EXPECT_EQ(late.MayAsk("a"), Status());
  EXPECT_EQ(late.MayAsk("b"), Status());

  give_up("a", Milliseconds(1000));
  EXPECT_EQ(late.MayAsk("b"), Unavailable("locked b")) << "both are late";
  late.Answered("b");
  EXPECT_EQ(late.MayAsk("b"), Status());
  EXPECT_FALSE(late.MayAsk("a").ok());
}

}  // namespace
}  // namespace firn
