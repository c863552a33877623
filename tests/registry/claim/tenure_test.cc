#include "registry/claim/tenure.h"

#include <gtest/gtest.h>

#include "registry/claim/claim_options.h"

namespace firn {
namespace {

constexpr WallMs kBase{1'750'000'000'400};

Tenure::Terms TermsUpTo(WallMs bound) {
  return {.slot = {0, 3},
          .machine = MachineId(3),
          .nonce = Nonce(1, 2),
          .version = 7,
          .uuid = "cluster",
          .base = kBase,
          .bound = bound};
}

// Layouts with ticks of a millisecond, and of a second.
Layout Fine() { return Layout::Firn(); }
Layout Coarse() { return *Layout::Parse("time:31s machine:10 sequence:1"); }

Tenure Make(const Layout& layout, Milliseconds window = kClaimWindowFirst) {
  return Tenure(TermsUpTo(kBase + window), layout);
}

TEST(TenureTest, PermitsNothingBeforeItsLimitIsRaised) {
  for (const Layout& layout : {Fine(), Coarse()}) {
    Tenure tenure = Make(layout);
    EXPECT_EQ(tenure.limit(), kBase);
    EXPECT_EQ(tenure.claim()->end_tick(), tenure.claim()->first_tick());
  }
}

// A call that uses up a tick waits for the next tick and is not refused.
TEST(TenureTest, GrantsTheTickAfterTheCurrentOneToo) {
  for (const Layout& layout : {Fine(), Coarse()}) {
    for (Milliseconds since_base{0}; since_base < Milliseconds(3'000);
         since_base += Milliseconds(7)) {
      Tenure tenure = Make(layout);
      const Tick first = tenure.claim()->first_tick();
      const WallMs now = kBase + since_base;
      tenure.RaiseLimit(tenure.LimitFor(now, first - 1));
      const Tick in_use = std::max(first, layout.TickAt(now));
      ASSERT_GT(tenure.claim()->end_tick(), in_use + 1) << layout.text() << " " << now;
      tenure.RaiseLimit(tenure.LimitFor(now, in_use + 1));
      ASSERT_GT(tenure.claim()->end_tick(), in_use + 2) << layout.text() << " " << now;
    }
  }
}

TEST(TenureTest, TheLimitNeverExceedsTheBoundAndNeverFalls) {
  for (const Layout& layout : {Fine(), Coarse()}) {
    Tenure tenure = Make(layout, Milliseconds(1'000));
    EXPECT_EQ(tenure.LimitFor(kBase + Milliseconds(5'000), Tick(0)), tenure.bound());
    tenure.RaiseLimit(tenure.bound());
    EXPECT_EQ(tenure.LimitFor(kBase - Milliseconds(5'000), Tick(0)), tenure.bound());
    EXPECT_LE(layout.StartOf(tenure.claim()->end_tick()), tenure.bound());
  }
}

TEST(TenureTest, ARenewalRaisesTheBoundButNotTheLimit) {
  Tenure tenure = Make(Fine());
  tenure.RaiseLimit(kBase + Milliseconds(10));
  tenure.Renewed(8, Nonce(8, 8), kBase + kClaimWindowSecond, {});
  EXPECT_EQ(tenure.bound(), kBase + kClaimWindowSecond);
  EXPECT_EQ(tenure.limit(), kBase + Milliseconds(10));
  EXPECT_EQ(tenure.terms().version, 8);
}

TEST(TenureTest, AGrantContainsTheFutureLimit) {
  const Tenure tenure = Make(Fine());
  const Grant grant = tenure.GrantUpTo(kBase + Milliseconds(300), {kBase, BootMs(9), 4});
  EXPECT_EQ(grant.limit, kBase + Milliseconds(300));
  EXPECT_EQ(grant.bound, tenure.bound());
  EXPECT_EQ(grant.nonce, tenure.terms().nonce);
  const Tenure::Terms inherited = Tenure::TermsOf(grant);
  EXPECT_EQ(inherited.base, grant.limit) << "not below ids that the dead process may have used";
  EXPECT_EQ(inherited.bound, grant.bound);
  EXPECT_EQ(grant.clocks, (ClockPair{kBase, BootMs(9), 4}));
}

TEST(TenureTest, AWordIsDrawnOncePerVersion) {
  Tenure tenure = Make(Fine());
  SeededEntropy entropy(1);
  const Nonce word = tenure.WordToSend(entropy);
  EXPECT_FALSE(word.zero());
  EXPECT_EQ(tenure.WordToSend(entropy), word) << "the same for all writes from that version";
  EXPECT_EQ(tenure.GrantUpTo(tenure.limit(), {}).pending_word, word);
  EXPECT_TRUE(tenure.terms().Knows(word));
  tenure.Renewed(tenure.terms().version, tenure.terms().word, tenure.bound(), {});
  EXPECT_EQ(tenure.WordToSend(entropy), word) << "checked, not changed";
  tenure.Renewed(tenure.terms().version + 1, word, tenure.bound(), {});
  EXPECT_EQ(tenure.terms().word, word);
  EXPECT_FALSE(tenure.terms().Knows(Nonce())) << "no write is pending";
  EXPECT_NE(tenure.WordToSend(entropy), word);
}

TEST(TenureTest, AWrappedVersionHasNotGoneBack) {
  Tenure::Terms terms = TermsUpTo(kBase + kClaimWindowFirst);
  terms.version = INT32_MAX;
  Tenure tenure(terms, Fine());
  tenure.Renewed(INT32_MIN, {}, tenure.bound(), {});
  EXPECT_EQ(tenure.terms().version, INT32_MIN);
}

TEST(TenureTest, TheCeilingFollowsTheRegistrysClockOrAFloorAheadOfIt) {
  Tenure::Terms terms;
  EXPECT_EQ(terms.CeilingAt(kBase), kBase + kPoisonAhead);
  terms.floor_set_at = kBase;
  terms.floor = kBase + Milliseconds(50);
  EXPECT_EQ(terms.CeilingAt(kBase + Milliseconds(7)), kBase + Milliseconds(57) + kPoisonAhead);
}

TEST(TenureTest, AReleaseReturnsUnusedTime) {
  for (const Layout& layout : {Fine(), Coarse()}) {
    const Tenure tenure = Make(layout);
    const Tick first = tenure.claim()->first_tick();
    EXPECT_EQ(tenure.BoundAfter(first - 1), layout.StartOf(first));
    EXPECT_EQ(tenure.BoundAfter(first + 5), layout.StartOf(first + 6));
  }
}

TEST(TenureDeathTest, AViolatedInvariantEndsTheProcess) {
  Tenure tenure = Make(Fine());
  tenure.RaiseLimit(kBase + Milliseconds(10));
  EXPECT_DEATH(tenure.RaiseLimit(kBase + Milliseconds(9)), "L fell");
  EXPECT_DEATH(tenure.RaiseLimit(tenure.bound() + Milliseconds(1)), "beyond the bound");
  EXPECT_DEATH(tenure.GrantUpTo(kBase, {}), "would fall");
  EXPECT_DEATH(tenure.Renewed(6, {}, tenure.bound(), {}),
               "version of a held claim's record went back");
  EXPECT_DEATH(tenure.Renewed(8, {}, tenure.bound() - Milliseconds(1), {}),
               "bound of a held claim went back");
}

}  // namespace
}  // namespace firn
