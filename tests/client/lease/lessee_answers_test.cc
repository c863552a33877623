// The rows of "Answers" in server/lease/ANSWERS.md.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/lease/lessee.h"
#include "tests/client/lease/lessee_rig.h"

namespace firn {
namespace {

using Got = LeaseOutcome::Kind;
using Kind = LeaseRequest::Kind;
constexpr Milliseconds kASecond{1'000};

// Lets the lease's first renewal become due.
SentAsks::Sent FirstRenewal(LesseeRig& rig) {
  rig.Pass(20 * kASecond);
  return rig.Newest(Kind::kRenew);
}

// Returns the longest time between two attempts of the newest grant in a minute, if each attempt is
// refused at once.
Milliseconds LongestWait(LesseeRig& rig) {
  Milliseconds longest{0}, waited{0};
  rig.Tick();
  for (size_t sent = rig.sent(Kind::kGrant); waited < 60 * kASecond;) {
    rig.Reply(rig.Newest(Kind::kGrant), {.kind = Got::kRefused});
    Milliseconds wait{0};
    for (; rig.sent(Kind::kGrant) == sent && wait < 60 * kASecond; wait += Milliseconds(10)) {
      rig.clock().Advance(Milliseconds(10));
      rig.Tick();
    }
    sent = rig.sent(Kind::kGrant);
    waited += wait;
    longest = std::max(longest, wait);
  }
  return longest;
}

TEST(LesseeAnswersTest, WaitsAtMostTwoSecondsOrATwelfthOfTheInterval) {
  LesseeRig minute(LeaseOptions{.name = "shop-1", .ahead = 60 * kASecond});
  EXPECT_GT(LongestWait(minute), kASecond);
  LesseeRig again(LeaseOptions{.name = "shop-1", .ahead = 60 * kASecond});
  EXPECT_LE(LongestWait(again), 2 * kASecond + Milliseconds(10));

  LesseeRig brief(LeaseOptions{.name = "shop-1", .ahead = 6 * kASecond});
  EXPECT_LE(LongestWait(brief), Milliseconds(510));
  LesseeRig briefest(LeaseOptions{.name = "shop-1", .ahead = 2 * kASecond});
  EXPECT_LE(LongestWait(briefest), Milliseconds(180));
}

// Returns the longest time between two attempts of an unanswered renewal, if servers grant
// intervals of this length.
Milliseconds LongestWaitForRenewal(Milliseconds ahead, Milliseconds given) {
  LesseeRig rig(LeaseOptions{.name = "shop-1", .ahead = ahead});
  rig.Hold(7, given);
  Milliseconds longest{0}, waited{0}, wait{0};
  for (size_t sent = 0; waited < given; waited += Milliseconds(1), wait += Milliseconds(1)) {
    rig.clock().Advance(Milliseconds(1));
    rig.Tick();
    if (rig.sent(Kind::kRenew) == sent) continue;
    if (sent > 0) longest = std::max(longest, wait);
    sent = rig.sent(Kind::kRenew);
    wait = Milliseconds(0);
    rig.Reply(rig.Newest(Kind::kRenew), {.kind = Got::kNoAnswer});
  }
  return longest;
}

TEST(LesseeAnswersTest, WaitsAtMostATwelfthOfTheIntervalThatWasGiven) {
  struct Case {
    int64_t ahead, given, longest;
  };
  for (const auto& [ahead, given, longest] : {Case{60'000, 60'000, 2'000},
                                              {60'000, 6'000, 500},
                                              {60'000, 3'000, 250},
                                              {60'000, 1'000, 100},
                                              {6'000, 60'000, 500},
                                              {2'000, 60'000, 166}}) {
    const Milliseconds wait = LongestWaitForRenewal(Milliseconds(ahead), Milliseconds(given));
    EXPECT_LE(wait, Milliseconds(longest)) << ahead << " " << given;
    EXPECT_GE(wait, Milliseconds(longest / 2)) << ahead << " " << given;
  }
}

// The release of the first lease is pending when a server gives a shorter interval.
TEST(LesseeAnswersTest, AppliesAShorterIntervalToARequestThatIsPending) {
  LesseeRig rig;
  rig.Hold(7);
  rig.Reply(FirstRenewal(rig), {.kind = Got::kNotExtended});
  rig.Hold(8);
  for (int i = 0; i < 5; ++i) {
    rig.Reply(rig.Newest(Kind::kRelease), {.kind = Got::kNoAnswer});
    rig.Pass(2 * kASecond);
  }
  rig.Reply(FirstRenewal(rig), {.kind = Got::kGone});
  rig.Hold(9, 3 * kASecond);
  const size_t sent = rig.sent(Kind::kRelease);
  rig.Reply(rig.Newest(Kind::kRelease), {.kind = Got::kNoAnswer});
  rig.Pass(Milliseconds(300));
  EXPECT_EQ(rig.sent(Kind::kRelease), sent + 1);
}

TEST(LesseeAnswersTest, FollowsAdviceForAtMostTenSeconds) {
  LesseeRig rig;
  rig.Tick();
  rig.Reply(rig.Newest(Kind::kGrant), {.kind = Got::kRefused, .retry_in = kAnHour});
  rig.Pass(Milliseconds(9'900));
  EXPECT_EQ(rig.sent(Kind::kGrant), 1u);
  rig.Pass(Milliseconds(200));
  EXPECT_EQ(rig.sent(Kind::kGrant), 2u);
}

TEST(LesseeAnswersTest, FollowsAdviceForAtMostHalfOfTheRestOfTheInterval) {
  LesseeRig rig;
  rig.Hold(7, 12 * kASecond);
  rig.Pass(4 * kASecond);
  ASSERT_EQ(rig.sent(Kind::kRenew), 1u);
  rig.Reply(rig.Newest(Kind::kRenew), {.kind = Got::kRefused, .retry_in = 10 * kASecond});
  rig.Pass(Milliseconds(3'900));
  EXPECT_EQ(rig.sent(Kind::kRenew), 1u);
  rig.Pass(Milliseconds(300));
  EXPECT_EQ(rig.sent(Kind::kRenew), 2u);
}

TEST(LesseeAnswersTest, SendsTheRenewalThenTheGrantThenReleases) {
  LesseeRig rig;
  rig.Hold(7, 600 * kASecond);
  rig.Reply(FirstRenewal(rig), {.kind = Got::kNotExtended});
  rig.Hold(8, 30 * kASecond);
  rig.clock().Advance(25 * kASecond);  // the release of the first lease was not answered
  const size_t before = rig.transport().all.size();
  rig.Tick();
  std::vector<Kind> kinds;
  for (size_t i = before; i < rig.transport().all.size(); ++i) {
    kinds.push_back(rig.transport().all[i].ask.kind);
  }
  EXPECT_EQ(kinds, (std::vector{Kind::kRenew, Kind::kGrant, Kind::kRelease}));
}

TEST(LesseeAnswersTest, SendsNoReleaseToAServerThatDoesNotKnowTheLease) {
  for (const bool stopped : {false, true}) {
    LesseeRig rig;
    rig.Hold();
    rig.Reply(FirstRenewal(rig), {.kind = Got::kUnknown});
    rig.Tick();
    EXPECT_EQ(rig.sent(Kind::kGrant), 2u);
    EXPECT_EQ(rig.Next().machine, MachineId(7));
    if (stopped) {
      rig.lessee().Stop(rig.clock().Read());
    } else {
      rig.Hold(8);
    }
    rig.Tick();
    EXPECT_EQ(rig.sent(Kind::kRelease), 0u);
    EXPECT_EQ(rig.lessee().stopped(), stopped);
  }
}

TEST(LesseeAnswersTest, RequestsAnotherLeaseAtOnceWhenTheServerExtendsNoMore) {
  LesseeRig rig;
  rig.Hold();
  const auto renewal = FirstRenewal(rig);
  rig.Reply(renewal, {.kind = Got::kNotExtended, .status = Unavailable("leases are disabled")});
  rig.Tick();
  ASSERT_EQ(rig.sent(Kind::kGrant), 2u);
  EXPECT_EQ(rig.Newest(Kind::kGrant).ask.avoid, "10.0.0.7:7609");
  ASSERT_EQ(rig.refusals().size(), 1u);
  EXPECT_EQ(rig.refusals()[0], Unavailable("leases are disabled"));

  rig.Pass(30 * kASecond);
  EXPECT_EQ(rig.sent(Kind::kRenew), 1u);
  EXPECT_EQ(rig.Next().machine, MachineId(7));
  EXPECT_TRUE(rig.losses().empty());

  rig.Hold(8);
  const LeaseRequest release = rig.Newest(Kind::kRelease).ask;
  EXPECT_EQ(release.lease, "lease-7");
  EXPECT_EQ(release.turn, "");  // the server has not accepted that of the renewal
  // Such a server releases nothing either.
  const size_t sent = rig.sent(Kind::kRelease);
  rig.Reply(rig.Newest(Kind::kRelease), {.kind = Got::kNotExtended});
  rig.Pass(5 * kASecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), sent);
}

TEST(LesseeAnswersTest, ReleasesWithTheLastAcceptedTurnWhenTheServerExtendsNoMore) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold();
  const auto accepted = FirstRenewal(rig);
  terms.until = rig.layout().TickAt(rig.clock().Wall() + 60 * kASecond);
  rig.Reply(accepted, terms);
  const auto refused = FirstRenewal(rig);
  ASSERT_NE(refused.ask.turn, accepted.ask.turn);
  rig.Reply(refused, {.kind = Got::kNotExtended});
  rig.Hold(8);
  EXPECT_EQ(rig.Newest(Kind::kRelease).ask.turn, accepted.ask.turn);
}

TEST(LesseeAnswersTest, RepeatsNoReleaseThatIsRefusedForGood) {
  LesseeRig rig;
  rig.Hold();
  rig.Reply(FirstRenewal(rig), {.kind = Got::kNotExtended});
  rig.Hold(8);
  const auto release = rig.Newest(Kind::kRelease);
  const size_t reported = rig.refusals().size();
  rig.Reply(release, {.kind = Got::kRefused, .status = Unavailable("it is starting")});
  rig.Pass(kASecond);
  ASSERT_EQ(rig.sent(Kind::kRelease), 2u);
  rig.Reply(release,
            {.kind = Got::kRefused, .status = Invalid("the tick is wrong"), .for_good = true});
  rig.Pass(10 * kASecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), 2u);
  ASSERT_EQ(rig.refusals().size(), reported + 2);
  EXPECT_EQ(rig.refusals().back(), Invalid("the tick is wrong"));
}

TEST(LesseeAnswersTest, StopsAtOnceWhenTheRenewalInOrderIsOutdated) {
  LesseeRig rig;
  rig.Hold();
  const std::string token = rig.Newest(Kind::kGrant).ask.token;
  rig.Reply(FirstRenewal(rig), {.kind = Got::kOutdated, .status = Unavailable("a later turn")});
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
  ASSERT_EQ(rig.losses().size(), 1u);
  EXPECT_EQ(rig.losses()[0].kind, LeaseLoss::Kind::kGone);
  rig.Tick();
  EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, token);
}

TEST(LesseeAnswersTest, UsesNoLeaseOfAnotherLayoutEvenAfterALoss) {
  LesseeRig rig;
  rig.Hold();
  rig.Reply(FirstRenewal(rig), {.kind = Got::kGone});
  rig.Tick();
  const WallMs now = rig.clock().Wall();
  LeaseGrant other = rig.Terms(9, now, now + 60 * kASecond);
  other.layout = Layout::Twitter();
  other.base_bits = other.layout.BaseBits(other.machine, 0);
  other.from = other.layout.FirstTickFrom(now);
  other.until = other.layout.TickAt(now + 60 * kASecond);
  for (int i = 0; i < 3; ++i) {
    const auto grant = rig.Newest(Kind::kGrant);
    rig.Reply(grant, other);
    EXPECT_FALSE(rig.TryNext().ok());
    rig.Pass(3 * kASecond);
    EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, grant.ask.token);
    const LeaseRequest release = rig.Newest(Kind::kRelease).ask;
    EXPECT_EQ(release.lease, other.lease);
    EXPECT_EQ(release.used, other.from - 1);
  }
  ASSERT_EQ(rig.refusals().size(), 3u);
  EXPECT_EQ(rig.refusals()[0], Invalid("a lease of layout twitter after one of layout firn"));
}

TEST(LesseeAnswersTest, ARenewalWithTheTermsOfAnotherLayoutExtendsNothing) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold();
  const auto renewal = FirstRenewal(rig);
  terms.layout = Layout::Twitter();
  terms.until = terms.layout.TickAt(rig.clock().Wall() + 60 * kASecond);
  ASSERT_EQ(CheckTerms(terms), Status());
  rig.Reply(renewal, terms);
  ASSERT_EQ(rig.refusals().size(), 1u);
  rig.Pass(5 * kASecond);
  EXPECT_EQ(rig.Newest(Kind::kRenew).ask.turn, renewal.ask.turn);
  rig.clock().Advance(40 * kASecond);
  EXPECT_FALSE(rig.TryNext().ok());
}

TEST(LesseeAnswersTest, GivesBackALeaseThatItCannotUse) {
  LesseeRig rig;
  rig.Tick();
  LeaseGrant terms = rig.Terms(7, rig.clock().Wall(), rig.clock().Wall() + 60 * kASecond);
  terms.sequence_count = 1'024;
  rig.Reply(rig.Newest(Kind::kGrant), terms);
  rig.Tick();
  ASSERT_EQ(rig.sent(Kind::kRelease), 1u);
  const auto release = rig.Newest(Kind::kRelease);
  EXPECT_EQ(release.ask.lease, terms.lease);
  EXPECT_EQ(release.ask.server, terms.server);
  EXPECT_EQ(release.ask.turn, "");
  EXPECT_EQ(release.ask.used, terms.from - 1);
  EXPECT_EQ(rig.refusals().size(), 1u);
  rig.Reply(release, {.kind = Got::kReleased});

  rig.Pass(kASecond);
  const auto again = rig.Newest(Kind::kGrant);
  rig.Reply(again, {.kind = Got::kUnusable,
                    .terms = {.lease = "lease-8", .server = "10.0.0.8:7609", .from = Tick(-5)},
                    .status = Invalid("a lease of another layout")});
  rig.Pass(kASecond);
  EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, again.ask.token);
  EXPECT_EQ(rig.Newest(Kind::kRelease).ask.lease, "lease-8");
  EXPECT_EQ(rig.Newest(Kind::kRelease).ask.used, Tick(-1));
  rig.Pass(120 * kASecond);
  const size_t sent = rig.sent(Kind::kRelease);
  rig.Pass(20 * kASecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), sent);  // by now, the lease has expired
}

// Returns whether an unused lease, whose release is not answered, is still being released at this
// time after its refusal.
bool ReleasesAfter(Milliseconds time, LeaseOutcome refused) {
  LesseeRig rig;
  rig.Tick();
  if (refused.kind == Got::kTerms) {
    const WallMs now = rig.clock().Wall();
    refused.terms = rig.Terms(7, now, *refused.end);
    refused.terms.sequence_count = 1'024;
  }
  rig.Reply(rig.Newest(Kind::kGrant), std::move(refused));
  rig.Pass(time);
  const size_t sent = rig.sent(Kind::kRelease);
  EXPECT_GT(sent, 0u);
  rig.Pass(10 * kASecond);
  return rig.sent(Kind::kRelease) > sent;
}

TEST(LesseeAnswersTest, ReleasesAnUnusedLeaseUntilItsEndOrForAhead) {
  const WallMs now = At("2026-11-26T12:00:00Z");
  const LeaseOutcome unreadable{.kind = Got::kUnusable, .terms = {.lease = "lease-7"}};
  for (const Got kind : {Got::kTerms, Got::kUnusable}) {
    LeaseOutcome refused = unreadable;
    refused.kind = kind;
    refused.end = now + 15 * kASecond;
    EXPECT_TRUE(ReleasesAfter(5 * kASecond, refused));
    EXPECT_FALSE(ReleasesAfter(15 * kASecond, refused));
    refused.end = now + 600 * kASecond;  // wrong, because the generator asked for 60 s
    EXPECT_TRUE(ReleasesAfter(45 * kASecond, refused));
    EXPECT_FALSE(ReleasesAfter(60 * kASecond, refused));
  }
  // These terms do not contain the lease's end, so it is released for `ahead`.
  for (const auto end : {std::optional<WallMs>(), std::optional<WallMs>(now - kASecond)}) {
    LeaseOutcome refused = unreadable;
    refused.end = end;
    EXPECT_TRUE(ReleasesAfter(45 * kASecond, refused));
    EXPECT_FALSE(ReleasesAfter(60 * kASecond, refused));
  }
}

TEST(LesseeAnswersTest, DoesNotReleaseTheLeaseThatItHolds) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold(7, 30 * kASecond);
  rig.Pass(21 * kASecond);
  ASSERT_EQ(rig.sent(Kind::kGrant), 2u);
  terms.sequence_count = 1'024;
  rig.Reply(rig.Newest(Kind::kGrant), terms);  // by a faulty server
  rig.Pass(kASecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), 0u);
}

TEST(LesseeAnswersTest, KeepsTheLeaseThatAServerGrantsASecondTime) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold(7, 30 * kASecond);
  rig.Pass(21 * kASecond);
  ASSERT_EQ(rig.sent(Kind::kGrant), 2u);
  const auto grant = rig.Newest(Kind::kGrant);
  rig.Reply(grant, terms);  // by a faulty server
  rig.Pass(3 * kASecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), 0u);
  EXPECT_EQ(rig.refusals().size(), 1u);
  EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, grant.ask.token);
  EXPECT_EQ(rig.Next().machine, MachineId(7));
}

}  // namespace
}  // namespace firn
