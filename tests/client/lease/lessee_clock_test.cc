#include <gtest/gtest.h>

#include "tests/client/lease/lessee_rig.h"

// The behaviour of a lessee when the wall clock of its machine is wrong, or jumps.

namespace firn {
namespace {

using Kind = LeaseRequest::Kind;

constexpr Milliseconds kSec{1'000};

// A server would refuse such a clock, but the lessee must not depend on that.
TEST(LesseeClockTest, AWallClockHoursBehindBeginsAtTheFirstTick) {
  LesseeRig rig(At("2026-11-26T09:00:00Z"));
  rig.Tick();
  const WallMs right = At("2026-11-26T12:00:00Z");
  rig.Reply(rig.Newest(Kind::kGrant), rig.Terms(7, right, right + 60 * kSec));
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(right));
  rig.clock().Advance(30 * kSec);
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(right + 30 * kSec));
  rig.clock().Advance(30 * kSec);
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
}

TEST(LesseeClockTest, IssuesNothingAfterTheWallClockHasJumpedUntilARenewalConfirmsIt) {
  LesseeRig rig;
  LeaseGrant terms = rig.Hold(7, kAnHour * 4);
  rig.Pass(20 * kSec);
  const auto before = rig.Newest(Kind::kRenew);
  rig.clock().StepWall(kAnHour);
  EXPECT_NE(rig.TryNext().status().message().find("jumped forward by 3600 s"), std::string::npos);
  rig.Reply(before, terms);  // it was sent before the jump
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
  rig.Pass(kSec / 5);
  const auto after = rig.Newest(Kind::kRenew);
  EXPECT_NE(after.ask.turn, before.ask.turn) << "at once";
  EXPECT_GT(after.ask.clock, before.ask.clock + kAnHour);
  rig.Pass(60 * kSec);
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable) << "however long it lasts";
  rig.Reply(after, terms);
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(rig.clock().Wall()));
}

TEST(LesseeClockTest, ARequestThatWasFirstSentBeforeAJumpDoesNotConfirmIt) {
  LesseeRig rig;
  const LeaseGrant terms = rig.Hold(7, kAnHour * 4);
  rig.Pass(20 * kSec);
  const auto renewal = rig.Newest(Kind::kRenew);
  rig.clock().StepWall(kAnHour);
  rig.Pass(3 * kSec);
  ASSERT_EQ(rig.Newest(Kind::kRenew).number, renewal.number) << "it is repeated";
  rig.Reply(rig.Newest(Kind::kRenew), terms);
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
}

TEST(LesseeClockTest, AGrantConfirmsTheWallClockToo) {
  LesseeRig rig;
  rig.Hold();
  rig.clock().StepWall(kAnHour);  // the machine was paused
  rig.Pass(2 * kSec);
  rig.Reply(rig.Newest(Kind::kRenew), {.kind = LeaseOutcome::Kind::kUnknown});
  rig.Pass(kSec);
  // By a server whose clock is behind by as much as it permits.
  const WallMs right = rig.clock().Wall();
  const LeaseGrant terms = rig.Terms(8, right - 9 * kSec, right + 60 * kSec);
  rig.Reply(rig.Newest(Kind::kGrant), terms);
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(right));
}

TEST(LesseeClockTest, AWallClockHoursAheadIssuesNothingUntilItIsCorrected) {
  LesseeRig rig;
  rig.Hold();
  rig.TakeSome();
  rig.clock().StepWall(kAnHour * 3);
  for (int i = 0; i < 40; ++i) {
    rig.Pass(kSec);
    const auto renewal = rig.Newest(Kind::kRenew);
    rig.Reply(renewal, {.kind = LeaseOutcome::Kind::kRefused,
                        .status = Invalid("the program's clock is 3 h ahead of the server's")});
    EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
  }
  rig.clock().StepWall(-kAnHour * 3);
  rig.TakeSome();
  EXPECT_EQ(rig.taken(), 6u);
}

TEST(LesseeClockTest, ASmallStepAheadNeedsNoServer) {
  LesseeRig rig;
  rig.Hold();
  rig.clock().StepWall(5 * kSec);
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(rig.clock().Wall()));
}

TEST(LesseeClockTest, AWallClockThatStepsBackDoesNotMovePositions) {
  LesseeRig rig;
  rig.Hold();
  for (int i = 0; i < 30; ++i) {
    rig.TakeSome();
    rig.clock().Advance(kSec);
    rig.clock().StepWall(-5 * kSec);
  }
  EXPECT_EQ(rig.taken(), 90u);
}

}  // namespace
}  // namespace firn
