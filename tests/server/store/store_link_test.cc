#include "server/store/store_link.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr Backoff::Options kBackoff{Milliseconds(100), Milliseconds(1000)};

TEST(StoreLinkTest, WaitsLongerAfterEachFailure) {
  VirtualClock clock(WallMs(0));
  SeededEntropy entropy(1);
  StoreLink link(kBackoff, clock, entropy);
  EXPECT_EQ(link.MayConnect(), Status());

  EXPECT_EQ(link.Lost(Unavailable("away")), Unavailable("away"));
  EXPECT_EQ(link.MayConnect(), Unavailable("away"));
  clock.Advance(Milliseconds(49));
  EXPECT_FALSE(link.MayConnect().ok());
  clock.Advance(Milliseconds(51));
  EXPECT_EQ(link.MayConnect(), Status());

  EXPECT_FALSE(link.Lost(Denied("no")).ok());
  clock.Advance(Milliseconds(99));
  EXPECT_EQ(link.MayConnect(), Denied("no"));
  clock.Advance(Milliseconds(101));
  EXPECT_EQ(link.MayConnect(), Status());
}

TEST(StoreLinkTest, ReplacesOnlyAConnectionThatHasWorkedAtOnce) {
  VirtualClock clock(WallMs(0));
  SeededEntropy entropy(1);
  StoreLink link(kBackoff, clock, entropy);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(link.Lost(Unavailable("away")).ok());
    clock.Advance(kBackoff.cap);
  }
  link.Worked();
  EXPECT_FALSE(link.Lost(Unavailable("cut")).ok());
  EXPECT_EQ(link.MayConnect(), Status());

  EXPECT_FALSE(link.Lost(Unavailable("it let us in, and takes no writes")).ok());
  EXPECT_FALSE(link.MayConnect().ok());
  clock.Advance(kBackoff.first);
  EXPECT_EQ(link.MayConnect(), Status()) << "after a connection that worked, the wait is short";
}

}  // namespace
}  // namespace firn
