#include "server/store/store_link.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

TEST(StoreLinkTest, WaitsLongerAfterEachFailureAndNotAtAllAfterASuccess) {
  VirtualClock clock(WallMs(0));
  SeededEntropy entropy(1);
  StoreLink link({Milliseconds(100), Milliseconds(1000)}, clock, entropy);
  EXPECT_EQ(link.MayConnect(), Status());

  EXPECT_EQ(link.Connected(Unavailable("away")), Unavailable("away"));
  EXPECT_EQ(link.MayConnect(), Unavailable("away"));
  clock.Advance(Milliseconds(49));
  EXPECT_FALSE(link.MayConnect().ok());
  clock.Advance(Milliseconds(51));
  EXPECT_EQ(link.MayConnect(), Status());

  EXPECT_FALSE(link.Connected(Denied("no")).ok());
  clock.Advance(Milliseconds(99));
  EXPECT_EQ(link.MayConnect(), Denied("no"));
  clock.Advance(Milliseconds(101));
  EXPECT_EQ(link.Connected(Status()), Status());
  EXPECT_EQ(link.MayConnect(), Status());
}

}  // namespace
}  // namespace firn
