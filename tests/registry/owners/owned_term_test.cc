#include "common/sequence/owned_term.h"

#include <gtest/gtest.h>

#include "registry/owners/sighting.h"

namespace firn {
namespace {

TEST(OwnedTermTest, HoldsUntilItsTimeIsOver) {
  OwnedTerm owned;
  EXPECT_FALSE(owned.Holds(owned.Load(), BootMs(0)));
  owned.Begin(7, BootMs(100));
  const uint64_t term = owned.Load();
  EXPECT_TRUE(owned.Holds(term, BootMs(99)));
  EXPECT_FALSE(owned.Holds(term, BootMs(100)));
  owned.Extend(BootMs(200));
  EXPECT_TRUE(owned.Holds(term, BootMs(199)));
}

TEST(OwnedTermTest, EndedTermDoesNotHoldInTheNext) {
  OwnedTerm owned;
  owned.Begin(7, BootMs(100));
  const uint64_t term = owned.Load();
  owned.End();
  EXPECT_FALSE(owned.Holds(term, BootMs(50)));
  owned.Begin(8, BootMs(100));
  EXPECT_FALSE(owned.Holds(term, BootMs(50)));
  EXPECT_TRUE(owned.Holds(owned.Load(), BootMs(50)));
}

constexpr Milliseconds kGap{1'000};
constexpr Sighting::State kState{.version = 3, .created_zxid = 9};

TEST(SightingTest, CountsFromTheFirstAnswerThatShowsTheState) {
  Sighting sighting;
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(0), 0, BootMs(0)));
  sighting.Saw(kState, 5, BootMs(1'000), kGap);
  sighting.Saw(kState, 5, BootMs(1'400), kGap);
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(500), 5, BootMs(1'499)));
  EXPECT_TRUE(sighting.HasLasted(Milliseconds(500), 5, BootMs(1'500)));
}

TEST(SightingTest, AnotherStateOrSessionOrAGapBeginsAgain) {
  Sighting sighting;
  const auto see = [&](Sighting::State state, int64_t session, int64_t ms) {
    sighting.Saw(state, session, BootMs(ms), kGap);
  };
  see(kState, 5, 0);
  see({.version = 4, .created_zxid = 9}, 5, 400);
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(500), 5, BootMs(700)));
  see({.version = 4, .created_zxid = 10}, 5, 800);
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(500), 5, BootMs(1'000)));
  see({.version = 4, .created_zxid = 10}, 6, 1'100);
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(500), 6, BootMs(1'400)));
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(0), 5, BootMs(1'400)));
  see({.version = 4, .created_zxid = 10}, 6, 2'101);
  EXPECT_FALSE(sighting.HasLasted(Milliseconds(500), 6, BootMs(2'200)));
  EXPECT_TRUE(sighting.HasLasted(Milliseconds(500), 6, BootMs(2'601)));
}

}  // namespace
}  // namespace firn
