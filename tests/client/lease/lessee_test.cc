#include "client/lease/lessee.h"

#include <gtest/gtest.h>

#include "common/time/civil_time.h"
#include "tests/client/lease/lessee_rig.h"
#include "tests/support/in_child.h"

namespace firn {
namespace {

using Kind = LeaseRequest::Kind;
constexpr Milliseconds kSecond{1'000};

TEST(LesseeTest, RepeatsAGrantWithItsTokenUntilItIsAnswered) {
  LesseeRig rig;
  rig.Pass(7 * kSecond);
  const auto& sent = rig.transport().all;
  ASSERT_GE(sent.size(), 3u);
  EXPECT_EQ(sent[0].ask.token.size(), 32u);
  for (const auto& each : sent) {
    EXPECT_EQ(each.ask.kind, Kind::kGrant);
    EXPECT_EQ(each.ask.token, sent[0].ask.token);
    EXPECT_EQ(each.number, sent[0].number);
  }
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);

  rig.Reply(sent[0], rig.Terms(7, rig.clock().Wall(), rig.clock().Wall() + 60 * kSecond));
  EXPECT_EQ(rig.Next().machine, MachineId(7));
  // The answer to a repeated request has the same lease, and changes nothing.
  const size_t before = sent.size();
  rig.Reply(sent[1], rig.Terms(7, rig.clock().Wall(), rig.clock().Wall() + 60 * kSecond));
  rig.Tick();
  EXPECT_EQ(sent.size(), before);
}

TEST(LesseeTest, SendsTheWallClockOfEachAttempt) {
  LesseeRig rig;
  rig.Tick();
  rig.Pass(3 * kSecond);
  const auto& sent = rig.transport().all;
  ASSERT_GE(sent.size(), 2u);
  EXPECT_EQ(sent[1].ask.clock - sent[0].ask.clock, 2 * kSecond);
}

TEST(LesseeTest, IssuesNoIdOutsideTheInterval) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold(7, 10 * kSecond);
  for (int i = 0; i < 12; ++i) {
    const Result<int64_t> id = rig.TryNext();
    EXPECT_EQ(id.ok(), i < 10) << i;
    if (id.ok()) {
      const Tick tick = rig.layout().Unpack(id.value_or(0)).value().tick;
      EXPECT_GE(tick, terms.from);
      EXPECT_LT(tick, terms.until);
    }
    rig.clock().Advance(kSecond);
  }
}

TEST(LesseeTest, ShowsTurnAndEndOfTheLastAnswerWhenItRenews) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold();
  rig.Pass(20 * kSecond);
  const auto first = rig.Newest(Kind::kRenew);
  EXPECT_EQ(first.ask.lease, terms.lease);
  EXPECT_EQ(first.ask.server, terms.server);
  EXPECT_EQ(first.ask.turn.size(), 32u);
  EXPECT_EQ(first.ask.acknowledged, "");
  EXPECT_EQ(first.ask.until, terms.until);

  LeaseGrant longer = terms;
  longer.until = terms.until + 20'000;
  rig.Reply(first, longer);
  rig.Pass(20 * kSecond);
  const auto second = rig.Newest(Kind::kRenew);
  EXPECT_NE(second.ask.turn, first.ask.turn);
  EXPECT_EQ(second.ask.acknowledged, first.ask.turn);
  EXPECT_EQ(second.ask.until, longer.until);
}

TEST(LesseeTest, RepeatsARenewalWithItsTurnWhenTheAnswerIsLost) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold();
  rig.Pass(20 * kSecond);
  const auto first = rig.Newest(Kind::kRenew);
  rig.Pass(10 * kSecond);
  const auto repeated = rig.Newest(Kind::kRenew);
  EXPECT_GE(rig.sent(Kind::kRenew), 3u);
  EXPECT_EQ(repeated.ask.turn, first.ask.turn);
  EXPECT_EQ(repeated.ask.acknowledged, first.ask.acknowledged);

  LeaseGrant longer = terms;
  longer.until = terms.until + 30'000;
  rig.Reply(first, longer);  // the answer to the first attempt was only late
  rig.clock().Advance(35 * kSecond);
  EXPECT_TRUE(rig.TryNext().ok());
}

TEST(LesseeTest, ClosesTheGeneratorAt410AndAsksElsewhere) {
  LesseeRig rig;
  rig.Hold();
  const std::string token = rig.Newest(Kind::kGrant).ask.token;
  EXPECT_TRUE(rig.TryNext().ok());
  rig.Pass(20 * kSecond);
  rig.Reply(rig.Newest(Kind::kRenew),
            {.kind = LeaseOutcome::Kind::kGone, .status = Conflict("another process extended it")});
  EXPECT_EQ(rig.TryNext().status(),
            Unavailable("the lease of machine id 7 was lost at " +
                        FormatRfc3339(rig.clock().Wall()) + ": another process extended it"));
  ASSERT_EQ(rig.losses().size(), 1u);
  EXPECT_EQ(rig.losses()[0].kind, LeaseLoss::Kind::kGone);
  EXPECT_EQ(rig.losses()[0].machine, MachineId(7));

  rig.Tick();
  EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, token);
  EXPECT_EQ(rig.Newest(Kind::kGrant).ask.avoid, "10.0.0.7:7609");
  EXPECT_EQ(rig.sent(Kind::kRelease), 0u);
  rig.Hold(8);
  EXPECT_EQ(rig.Next().machine, MachineId(8));
}

TEST(LesseeTest, KeepsThePromiseAndAsksElsewhereWhenTheServerDoesNotKnowTheLease) {
  LesseeRig rig;
  rig.Hold();
  rig.Pass(20 * kSecond);
  EXPECT_EQ(rig.sent(Kind::kGrant), 1u);
  rig.Reply(rig.Newest(Kind::kRenew), {.kind = LeaseOutcome::Kind::kUnknown});
  const size_t renewals = rig.sent(Kind::kRenew);
  rig.Tick();
  EXPECT_EQ(rig.sent(Kind::kGrant), 2u);
  EXPECT_EQ(rig.Newest(Kind::kGrant).ask.avoid, "10.0.0.7:7609");
  rig.Pass(38 * kSecond);
  EXPECT_EQ(rig.sent(Kind::kRenew), renewals);
  EXPECT_EQ(rig.Next().machine, MachineId(7));
  EXPECT_TRUE(rig.losses().empty());
}

TEST(LesseeTest, ReplacesAnEndingLeaseWhenAThirdIsLeft) {
  LesseeRig rig;
  rig.Tick();
  LeaseGrant terms = rig.Terms(7, rig.clock().Wall(), rig.clock().Wall() + 60 * kSecond);
  terms.ending = true;
  rig.Reply(rig.Newest(Kind::kGrant), terms);
  rig.Pass(39 * kSecond);
  EXPECT_EQ(rig.sent(Kind::kGrant), 1u);
  rig.Pass(2 * kSecond);
  ASSERT_EQ(rig.sent(Kind::kGrant), 2u);
  EXPECT_EQ(rig.Newest(Kind::kGrant).ask.avoid, "10.0.0.7:7609");

  const IdFields last = rig.Next();
  const WallMs now = rig.clock().Wall();
  rig.Reply(rig.Newest(Kind::kGrant), rig.Terms(3, now - kSecond, now + 60 * kSecond));
  // A smaller machine id in the same tick would give a smaller id, so the id clock moves on.
  const IdFields next = rig.Next();
  EXPECT_EQ(next.machine, MachineId(3));
  EXPECT_GT(next.tick, last.tick);

  rig.Tick();
  const LeaseRequest release = rig.Newest(Kind::kRelease).ask;
  EXPECT_EQ(release.lease, "lease-7");
  EXPECT_EQ(release.used, last.tick);
  EXPECT_TRUE(rig.losses().empty());
}

TEST(LesseeTest, ReleasesUntilItIsAnsweredOrTheLeaseHasEnded) {
  LesseeRig rig;
  rig.Hold(7, 30 * kSecond);
  rig.Pass(21 * kSecond);
  rig.Hold(8, 600 * kSecond);
  rig.Pass(5 * kSecond);
  EXPECT_GE(rig.sent(Kind::kRelease), 2u);
  rig.Pass(5 * kSecond);
  const size_t sent = rig.sent(Kind::kRelease);
  rig.Pass(20 * kSecond);
  EXPECT_EQ(rig.sent(Kind::kRelease), sent);
}

TEST(LesseeTest, StopsAtTheEndAfterAPause) {
  LesseeRig rig;
  rig.Hold();
  rig.TakeSome();
  rig.clock().Advance(600 * kSecond);  // SIGSTOP, or a suspended machine
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
  rig.Tick();
  ASSERT_EQ(rig.losses().size(), 1u);
  EXPECT_EQ(rig.losses()[0].kind, LeaseLoss::Kind::kExpired);
  rig.Pass(5 * kSecond);
  EXPECT_EQ(rig.losses().size(), 1u);

  rig.Hold(9);
  rig.TakeSome();
  EXPECT_EQ(rig.taken(), 6u);
}

TEST(LesseeTest, AnExtensionAfterThePauseContinuesTheSameLease) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold();
  rig.clock().Advance(90 * kSecond);
  rig.Tick();
  terms.until = terms.until + 60'000;
  rig.Reply(rig.Newest(Kind::kRenew), terms);
  EXPECT_EQ(rig.Next().machine, MachineId(7));
  rig.Pass(40 * kSecond);
  EXPECT_EQ(rig.losses().size(), 2u);
}

TEST(LesseeTest, TheSameIntervalGrantedTwiceRepeatsNoId) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold(7, 30 * kSecond);
  rig.TakeSome();
  rig.Pass(21 * kSecond);
  rig.TakeSome();
  ASSERT_EQ(rig.sent(Kind::kGrant), 2u);
  terms.lease = "another lease";
  rig.Reply(rig.Newest(Kind::kGrant), terms);  // by a faulty server
  rig.TakeSome();
  EXPECT_EQ(rig.taken(), 9u);
}

TEST(LesseeTest, ClosesBeforeItReadsTheLastTickAndStaysClosed) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold();
  rig.Pass(20 * kSecond);
  const auto renewal = rig.Newest(Kind::kRenew);
  const IdFields last = rig.Next();
  rig.lessee().Stop(rig.clock().Read());
  EXPECT_EQ(rig.TryNext().status(), Unavailable("the generator is stopped"));
  rig.Tick();
  const LeaseRequest release = rig.Newest(Kind::kRelease).ask;
  EXPECT_EQ(release.used, last.tick);
  EXPECT_EQ(release.turn, renewal.ask.turn);  // the server may have accepted it
  EXPECT_EQ(release.until, terms.until);

  terms.until = terms.until + 60'000;
  rig.Reply(renewal, terms);
  EXPECT_EQ(rig.TryNext().status(), Unavailable("the generator is stopped"));
  EXPECT_FALSE(rig.lessee().stopped());
  rig.Reply(rig.Newest(Kind::kRelease), {.kind = LeaseOutcome::Kind::kReleased});
  EXPECT_TRUE(rig.lessee().stopped());
}

TEST(LesseeTest, AnUnusedLeaseIsReleasedBelowItsFirstTick) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold();
  rig.lessee().Stop(rig.clock().Read());
  rig.Tick();
  EXPECT_EQ(rig.Newest(Kind::kRelease).ask.used, terms.from - 1);
}

TEST(LesseeTest, ReportsRefusalsAndWaitsAsLongAsTheServerSays) {
  LesseeRig rig;
  rig.Tick();
  rig.Reply(rig.Newest(Kind::kGrant), {.kind = LeaseOutcome::Kind::kRefused,
                                       .status = Unavailable("too many leases"),
                                       .retry_in = 5 * kSecond});
  rig.Pass(Milliseconds(4'900));
  EXPECT_EQ(rig.sent(Kind::kGrant), 1u);
  rig.Pass(Milliseconds(200));
  EXPECT_EQ(rig.sent(Kind::kGrant), 2u);
  ASSERT_EQ(rig.refusals().size(), 1u);
  EXPECT_EQ(rig.refusals()[0], Unavailable("too many leases"));
}

TEST(LesseeTest, RefusesUnusableTermsAndAsksWithAnotherToken) {
  const auto spoilt = [](auto spoil) {
    LesseeRig rig;
    rig.Tick();
    LeaseGrant terms = rig.Terms(7, rig.clock().Wall(), rig.clock().Wall() + Milliseconds(60'000));
    spoil(terms);
    const std::string token = rig.Newest(Kind::kGrant).ask.token;
    rig.Reply(rig.Newest(Kind::kGrant), terms);
    EXPECT_FALSE(rig.TryNext().ok());
    EXPECT_EQ(rig.refusals().size(), 1u);
    rig.Pass(kSecond);
    EXPECT_NE(rig.Newest(Kind::kGrant).ask.token, token);
    return rig.refusals().empty() ? std::string() : rig.refusals()[0].message();
  };
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.lease.clear(); }), "a lease without a name");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.machine = MachineId(8); }),
            "base bits of another machine id than 8");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.machine = MachineId(1'024); }),
            "machine id 1024 does not fit into layout firn");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.base_bits |= 1; }),
            "base bits in the time or sequence field");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.sequence_count = 1'024; }),
            "a lease of a part of the sequence, which this version does not support");
  EXPECT_NE(spoilt([](LeaseGrant& t) { t.until = t.from; }), "");
}

TEST(LesseeTest, IgnoresARenewalWithTheTermsOfAnotherLease) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold();
  rig.Pass(20 * kSecond);
  terms.machine = MachineId(9);
  terms.base_bits = rig.layout().BaseBits(terms.machine, 0);
  terms.until = terms.until + 600'000;
  rig.Reply(rig.Newest(Kind::kRenew), terms);
  rig.clock().Advance(45 * kSecond);
  EXPECT_FALSE(rig.TryNext().ok());
}

TEST(LesseeTest, DoesNotAskAgainAtOnceWhenALeaseIsUseless) {
  LesseeRig rig;
  for (int i = 0; i < 100; ++i) {
    rig.Pass(Milliseconds(100));
    const auto sent = rig.transport().all.back();
    if (sent.ask.kind != Kind::kGrant) continue;
    const WallMs past = rig.clock().Wall() - kAnHour;
    rig.Reply(sent, rig.Terms(static_cast<uint32_t>(i) + 1, past, past + kSecond));
  }
  EXPECT_LE(rig.sent(Kind::kGrant), 6u);
}

TEST(LesseeTest, AForkedChildIssuesNothingAndSendsNothing) {
  LesseeRig rig;
  rig.Hold();
  EXPECT_TRUE(rig.TryNext().ok());
  const size_t sent = rig.transport().all.size();
  EXPECT_EQ(InChild([&] {
              if (rig.TryNext().status() !=
                  Unavailable("this process is a forked child; create another generator")) {
                return 1;
              }
              rig.Pass(30 * kSecond);
              rig.lessee().Stop(rig.clock().Read());
              rig.Tick();
              return rig.transport().all.size() == sent ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(rig.TryNext().ok());
}

}  // namespace
}  // namespace firn
