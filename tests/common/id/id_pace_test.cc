#include "common/id/id_pace.h"

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kNow{1'800'000'000'000};

// An id clock with clocks that the test moves, by default in steps of 1 ms.
class IdPaceTest : public testing::Test {
 protected:
  void Use(IdClockOptions options) { pace_.emplace(options); }

  WallMs Read() { return pace_->Advance(clock_.Read()); }
  void Pass(Milliseconds time, Milliseconds step = Milliseconds(1)) {
    for (Milliseconds passed(0); passed < time; passed += step) {
      clock_.Advance(step);
      const WallMs now = Read();
      ASSERT_GE(now, newest_) << "the id clock went back";
      newest_ = now;
    }
  }
  void StepWall(Milliseconds step) {
    clock_.StepWall(step);
    newest_ = Read();
  }
  Milliseconds Skew() { return pace_->report().skew; }

  VirtualClock clock_{kNow};
  std::optional<IdPace> pace_{IdClockOptions{}};
  WallMs newest_{0};
};

using std::chrono::seconds;

// Otherwise the audit would call a clock right until the registry's clock is read again.
TEST_F(IdPaceTest, AStepChangesTheDifferenceToTheRegistrysClockTogetherWithTheSkew) {
  Read();
  EXPECT_EQ(pace_->report().ahead_of_registry, std::nullopt);
  pace_->NoteRegistryClock(kNow - seconds(1), clock_.Read());
  Pass(seconds(2));
  EXPECT_EQ(pace_->report().ahead_of_registry, seconds(1));
  for (const int64_t step : {3'600, -7'200}) {
    const Milliseconds before = *pace_->report().ahead_of_registry;
    clock_.StepWall(seconds(step));
    Read();
    EXPECT_EQ(pace_->report().ahead_of_registry, before + seconds(step));
  }
  EXPECT_EQ(pace_->report().ahead_of_registry, seconds(1 - 3'600));
  EXPECT_EQ(Skew(), seconds(3'600));
}

TEST_F(IdPaceTest, StartsAtTheWallClock) { EXPECT_EQ(Read(), kNow); }

TEST_F(IdPaceTest, StartsAtALaterBase) {
  pace_->RaiseTo(kNow + seconds(9));
  EXPECT_EQ(Read(), kNow + seconds(9));
}

TEST_F(IdPaceTest, IsNotLoweredByABase) {
  Read();
  pace_->RaiseTo(kNow - seconds(9));
  EXPECT_EQ(Read(), kNow);
}

TEST_F(IdPaceTest, FollowsASlewedWallClock) {
  Read();
  for (int i = 0; i < 100; ++i) {
    Pass(Milliseconds(1'000), Milliseconds(100));
    StepWall(Milliseconds(i % 2 == 0 ? 1 : 0));
  }
  EXPECT_EQ(Read(), clock_.Wall());
  EXPECT_EQ(pace_->report().steps_forward, 0u);
}

TEST_F(IdPaceTest, FollowsAStepForwardAtOnce) {
  Read();
  StepWall(seconds(5));
  EXPECT_EQ(Read(), kNow + seconds(5));
  EXPECT_EQ(pace_->report().steps_forward, 1u);
}

TEST_F(IdPaceTest, DoesNotFollowAFarJumpAtOnce) {
  Read();
  StepWall(Milliseconds(5'001));
  EXPECT_EQ(Read(), kNow);
  Pass(seconds(29), Milliseconds(500));
  EXPECT_EQ(Read(), kNow + seconds(29));
  EXPECT_TRUE(pace_->report().jump_held);
}

TEST_F(IdPaceTest, FollowsAFarJumpThatHasLasted) {
  Read();
  StepWall(seconds(3600));
  Pass(seconds(30), Milliseconds(500));
  EXPECT_EQ(Read(), clock_.Wall());
  EXPECT_FALSE(pace_->report().jump_held);
}

TEST_F(IdPaceTest, WithoutAHoldAFarJumpStopsItUntilItIsConfirmedOrReverted) {
  Use({.jump_hold = std::nullopt});
  Read();
  StepWall(seconds(3600));
  EXPECT_TRUE(pace_->stopped());
  Pass(seconds(60), Milliseconds(500));
  EXPECT_TRUE(pace_->stopped());
  EXPECT_EQ(Read(), kNow + seconds(60));
  pace_->RaiseTo(clock_.Wall() - Milliseconds(5'001));
  EXPECT_TRUE(pace_->stopped());
  pace_->RaiseTo(clock_.Wall() - seconds(5));
  EXPECT_FALSE(pace_->stopped());
  EXPECT_EQ(Read(), clock_.Wall());

  StepWall(seconds(3600));
  EXPECT_TRUE(pace_->stopped());
  StepWall(seconds(-3600));
  EXPECT_FALSE(pace_->stopped());

  StepWall(seconds(3600));
  EXPECT_TRUE(pace_->stopped());
  StepWall(seconds(-7200));
  EXPECT_FALSE(pace_->stopped()) << "the wall clock is behind";
}

TEST_F(IdPaceTest, ARevertedFarJumpHasNoEffect) {
  Read();
  StepWall(seconds(3600));
  Pass(seconds(20), Milliseconds(500));
  StepWall(-seconds(3600));
  EXPECT_EQ(Read(), clock_.Wall());
  EXPECT_EQ(Skew(), Milliseconds(0));
}

// The wall clock jumps ahead, back, and ahead again. The second jump must last as long as a new
// one.
TEST_F(IdPaceTest, AFarJumpThatRecursMustLastAgain) {
  Read();
  StepWall(seconds(3600));
  Pass(seconds(20), Milliseconds(500));
  StepWall(-seconds(3602));
  Pass(seconds(1), Milliseconds(500));
  StepWall(seconds(3602));
  Pass(seconds(15), Milliseconds(500));
  EXPECT_LT(Read(), clock_.Wall() - seconds(3500));
}

TEST_F(IdPaceTest, IgnoresAJumpThatKeepsMoving) {
  Read();
  for (int i = 0; i < 60; ++i) {
    StepWall(seconds(6));
    Pass(seconds(1), Milliseconds(500));
  }
  EXPECT_EQ(Read(), kNow + seconds(60));
}

TEST_F(IdPaceTest, ARestartShowsTheGivenTime) {
  StepWall(seconds(3600));
  pace_->Restart(kNow, clock_.Read());
  EXPECT_EQ(pace_->time(), kNow);
  EXPECT_EQ(Skew(), -seconds(3600));
  clock_.Advance(seconds(2));
  EXPECT_EQ(Read(), kNow + seconds(2)) << "the wall clock is believed later, if at all";
  StepWall(-seconds(3600));
  EXPECT_EQ(Read(), kNow + seconds(2));
}

TEST_F(IdPaceTest, ARestartByAnOvertakenReadingContinuesFromTheLaterOne) {
  const Now then = clock_.Read();
  Pass(seconds(1));
  pace_->Restart(kNow - seconds(60), then);
  EXPECT_EQ(pace_->time(), kNow - seconds(59));
}

TEST_F(IdPaceTest, ARestartAheadOfTheWallClockStopsAStrictClock) {
  Use({.policy = ClockPolicy::kStrict});
  Read();
  pace_->Restart(kNow + seconds(9), clock_.Read());
  EXPECT_TRUE(pace_->stopped());
  pace_->Restart(kNow, clock_.Read());
  EXPECT_FALSE(pace_->stopped());
}

TEST_F(IdPaceTest, AFarJumpNeedsTheRegistrysClockIfThereIsOne) {
  Use({.registry_has_clock = true});
  Read();
  StepWall(seconds(3600));
  Pass(seconds(40), Milliseconds(500));
  EXPECT_EQ(Read(), kNow + seconds(40)) << "it has not been heard";
  pace_->NoteRegistryClock(kNow + seconds(40), clock_.Read());
  Pass(seconds(40), Milliseconds(500));
  EXPECT_EQ(Read(), kNow + seconds(80)) << "it disagrees";
  pace_->NoteRegistryClock(clock_.Wall() - seconds(9), clock_.Read());
  EXPECT_EQ(Read(), clock_.Wall());
}

TEST_F(IdPaceTest, TheBootClockExtrapolatesTheRegistrysClock) {
  Use({.registry_has_clock = true});
  Read();
  StepWall(seconds(3600));
  pace_->NoteRegistryClock(clock_.Wall(), clock_.Read());
  Pass(seconds(31), Milliseconds(500));
  EXPECT_EQ(Read(), clock_.Wall());
}

TEST_F(IdPaceTest, RunsAtNineTenthsWhileTheWallClockIsBehind) {
  Read();
  StepWall(-seconds(2));
  EXPECT_EQ(Read(), kNow);
  Pass(seconds(10), Milliseconds(7));
  EXPECT_NEAR(static_cast<double>((Read() - kNow).count()), 9'000, 10);
  EXPECT_EQ(pace_->report().steps_back, 1u);
}

TEST_F(IdPaceTest, ReducesASmallDifferenceToZero) {
  Read();
  StepWall(-seconds(2));
  Pass(seconds(19));
  EXPECT_GT(Skew(), Milliseconds(0));
  Pass(seconds(2));
  EXPECT_LE(Skew(), Milliseconds(1));
  Pass(seconds(2));
  EXPECT_LE(Skew(), Milliseconds(1));
}

TEST_F(IdPaceTest, KeepsPaceAndDistanceWhenTheWallClockIsFarBehind) {
  Read();
  StepWall(-seconds(3600));
  Pass(seconds(100), Milliseconds(10));
  EXPECT_EQ(Read(), kNow + seconds(100));
  EXPECT_EQ(Skew(), seconds(3600));
}

TEST_F(IdPaceTest, TheBootClockAdvancesABaseAheadOfTheWallClock) {
  Read();
  pace_->RaiseTo(kNow + seconds(600));
  Pass(seconds(10));
  EXPECT_EQ(Read(), kNow + seconds(610));
}

TEST_F(IdPaceTest, IgnoresAMillisecondBehind) {
  Read();
  StepWall(-Milliseconds(1));
  EXPECT_EQ(Read(), kNow);
  Pass(Milliseconds(1));
  EXPECT_EQ(Read(), kNow);
  Pass(Milliseconds(1));
  EXPECT_EQ(Read(), clock_.Wall());
  EXPECT_EQ(pace_->report().steps_back, 0u);
}

TEST_F(IdPaceTest, StrictStopsAndReportsItWhileTheWallClockIsBehind) {
  Use({.policy = ClockPolicy::kStrict});
  Read();
  StepWall(-seconds(2));
  EXPECT_TRUE(pace_->stopped());
  Pass(Milliseconds(1'990));
  EXPECT_EQ(Read(), kNow);
  EXPECT_TRUE(pace_->stopped());
  Pass(Milliseconds(20));
  EXPECT_FALSE(pace_->stopped());
  EXPECT_EQ(Read(), clock_.Wall());
}

TEST_F(IdPaceTest, StrictResumesWhenTheWallClockIsAheadAgain) {
  Use({.policy = ClockPolicy::kStrict});
  Read();
  StepWall(-seconds(2));
  StepWall(seconds(3));
  EXPECT_FALSE(pace_->stopped());
  EXPECT_EQ(Read(), clock_.Wall());
}

TEST_F(IdPaceTest, StrictDoesNotStopForAMillisecond) {
  Use({.policy = ClockPolicy::kStrict});
  Read();
  StepWall(-Milliseconds(1));
  EXPECT_FALSE(pace_->stopped());
}

TEST_F(IdPaceTest, AnOlderReadingChangesNothing) {
  Read();
  const Now old = clock_.Read();
  Pass(Milliseconds(50));
  EXPECT_EQ(pace_->Advance(old), kNow + Milliseconds(50));
  EXPECT_EQ(Read(), kNow + Milliseconds(50));
  EXPECT_EQ(pace_->report().steps_back, 0u);
}

TEST_F(IdPaceTest, AlarmsOnceAMinuteWhileTheSkewIsLarge) {
  Read();
  EXPECT_FALSE(pace_->AlarmIsDue());
  StepWall(-seconds(3600));
  int alarms = 0;
  for (int i = 0; i < 150; ++i) {
    Pass(seconds(1), seconds(1));
    alarms += pace_->AlarmIsDue() ? 1 : 0;
  }
  EXPECT_EQ(alarms, 3);
}

TEST_F(IdPaceTest, AlarmsAboutAWallClockFarAhead) {
  Read();
  StepWall(seconds(3600));
  EXPECT_TRUE(pace_->AlarmIsDue());
}

// With any steps of the wall clock, the id clock never decreases, and never exceeds the maximum of
// all earlier wall clock times, each plus the time since then.
TEST_F(IdPaceTest, NeverGoesBackForAnyWallClock) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    SeededEntropy random(seed);
    for (const ClockPolicy policy : {ClockPolicy::kRun, ClockPolicy::kStrict}) {
      Use({.policy = policy});
      newest_ = Read();
      WallMs highest = newest_;
      for (int i = 0; i < 20'000; ++i) {
        const Milliseconds passed(static_cast<int64_t>(random.Below(20)));
        clock_.Advance(passed);
        if (random.Below(50) == 0) {
          clock_.StepWall(Milliseconds(static_cast<int64_t>(random.Below(20'000)) - 10'000));
        }
        highest = std::max(highest + passed, clock_.Wall());
        const WallMs now = Read();
        ASSERT_GE(now, newest_);
        ASSERT_LE(now, highest);
        newest_ = now;
      }
    }
  }
}

}  // namespace
}  // namespace firn
