#include "registry/claim/believed_clock.h"

#include <gtest/gtest.h>

#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr Milliseconds kSkewMax{10'000};

// An immediate reading at this wall and boot time.
Now Clocks(WallMs wall, BootMs boot) { return {wall, boot}; }

TEST(BelievedClockTest, CarriesTheLastBelievedReadingByTheBootClock) {
  BelievedClock clock(kSkewMax, false);
  EXPECT_EQ(clock.At(BootMs(5)), std::nullopt);
  clock.Confirm(kStart, BootMs(1'000));
  EXPECT_EQ(clock.At(BootMs(4'000)), kStart + Milliseconds(3'000));
  const Now later = Clocks(kStart + 5 * kADay, BootMs(2'000));
  EXPECT_TRUE(clock.Hear(kStart + Milliseconds(9'000), later, later)) << "within the skew";
  EXPECT_EQ(clock.At(BootMs(2'000)), kStart + Milliseconds(9'000));
}

TEST(BelievedClockTest, RejectsAStepThatTheWallClockDoesNotConfirm) {
  for (const Milliseconds step : {2 * kADay, -2 * kADay, Milliseconds(11'000)}) {
    BelievedClock clock(kSkewMax, false);
    clock.Confirm(kStart, BootMs(1'000));
    const Now now = Clocks(kStart, BootMs(1'000));
    EXPECT_FALSE(clock.Hear(kStart + step, now, now));
    EXPECT_EQ(clock.At(BootMs(1'000)), kStart);
    EXPECT_EQ(clock.off(), step);
    EXPECT_EQ(clock.ShownAt(BootMs(1'000)), kStart + step);
    EXPECT_TRUE(clock.Hear(kStart, now, now)) << "back again";
    EXPECT_FALSE(clock.disagrees());
  }
}

TEST(BelievedClockTest, FollowsAStepThatTheWallClockConfirms) {
  BelievedClock clock(kSkewMax, false);
  clock.Confirm(kStart, BootMs(1'000));
  const Now now = Clocks(kStart + kADay, BootMs(1'000));
  EXPECT_TRUE(clock.Hear(kStart + kADay, now, now));
  EXPECT_EQ(clock.At(BootMs(1'000)), kStart + kADay);
}

TEST(BelievedClockTest, ASharedWallClockConfirmsNothing) {
  BelievedClock clock(kSkewMax, true);
  clock.Confirm(kStart, BootMs(1'000));
  const Now now = Clocks(kStart + kADay, BootMs(1'000));
  EXPECT_FALSE(clock.Hear(kStart + kADay, now, now));
  EXPECT_EQ(clock.off(), kADay);
}

TEST(BelievedClockTest, ASlowAnswerIsNotAStep) {
  BelievedClock clock(kSkewMax, false);
  clock.Confirm(kStart, BootMs(1'000));
  const Milliseconds pause{900'000};
  const Now asked = Clocks(kStart, BootMs(1'000));
  const Now now = Clocks(kStart + pause, BootMs(1'000) + pause);
  EXPECT_TRUE(clock.Hear(kStart, asked, now));
  EXPECT_EQ(clock.At(now.boot), kStart + pause) << "not behind by the pause";
}

// A holder with a correct clock, and a registry whose clock steps.
class RegistryClockStepTest : public ClaimKeeperTest {
 protected:
  void StartHolder(ClaimOptions options) {
    machine_.emplace(clock_.Wall(), clock_.Boot());
    host_ = std::make_unique<ClaimHost>(tree_, *machine_, disk_, options, ++seed_);
    Pass(Milliseconds(10'000));
    ASSERT_TRUE(Serves(*host_)) << host_->status().reason;
  }

  void Pass(Milliseconds time, Milliseconds step = Milliseconds(100)) {
    for (Milliseconds passed{0}; passed < time; passed += step) {
      clock_.Advance(step);
      machine_->Advance(step);
      host_->Step();
    }
  }

  WallMs BoundInRegistry() { return RecordOf(host_->status().slot->worker).bound; }

  std::optional<VirtualClock> machine_;
  std::unique_ptr<ClaimHost> host_;
};

TEST_F(RegistryClockStepTest, AHolderContinuesWhileTheRegistrysClockIsWrong) {
  for (const Milliseconds step : {-2 * kADay, 2 * kADay, 20 * kAnHour}) {
    MakeClusterWith(4);
    disk_ = {};
    StartHolder(Options());
    clock_.StepWall(step);
    Pass(3 * Options().window);
    EXPECT_TRUE(Serves(*host_)) << host_->status().reason;
    const ClaimStatus status = host_->status();
    EXPECT_GT(status.left, Options().window / 2);
    EXPECT_EQ(status.renewals.failed, 0u);
    EXPECT_LE(BoundInRegistry(), machine_->Wall() + Options().window + kSkewMax) << "no poison";
    EXPECT_GT(std::chrono::abs(status.registry_clock_off), std::chrono::abs(step) - kAnHour);
    EXPECT_NE(status.clock_trouble.find(step < Milliseconds(0) ? "behind" : "ahead of"),
              std::string::npos)
        << status.clock_trouble;
    clock_.StepWall(-step);
    Pass(Milliseconds(60'000));
    EXPECT_EQ(host_->status().clock_trouble, "");
    // The holder is killed and loses its grant, so it gets its slot again only after the bound.
    host_.reset();
    disk_ = {};
    StartHolder(Options());
    EXPECT_LE(BoundInRegistry(), machine_->Wall() + Options().window + kSkewMax);
  }
}

TEST_F(RegistryClockStepTest, WithADirectoryAHolderContinuesWhileTheHostsClockIsWrong) {
  for (const Milliseconds step : {-2 * kADay, 2 * kADay}) {
    MakeClusterWith(4);
    disk_ = {};
    ClaimOptions options = Options();
    options.registry_shares_clock = true;
    StartHolder(options);
    const WallMs before = machine_->Wall();
    clock_.StepWall(step);
    machine_->StepWall(step);
    Pass(Milliseconds(20'000));
    EXPECT_TRUE(Serves(*host_)) << host_->status().reason;
    EXPECT_LE(BoundInRegistry(), before + kAnHour);
    if (step > Milliseconds(0)) continue;
    Pass(3 * Options().window);
    EXPECT_TRUE(Serves(*host_)) << host_->status().reason;
    EXPECT_NE(host_->status().clock_trouble.find("this host's clock"), std::string::npos);
  }
}

TEST_F(RegistryClockStepTest, FollowsAStepOfBothClocks) {
  StartHolder(Options());
  clock_.StepWall(kAnHour);
  machine_->StepWall(kAnHour);
  Pass(Milliseconds(60'000));
  EXPECT_EQ(host_->status().clock_trouble, "");
  EXPECT_GT(BoundInRegistry(), clock_.Wall());
  EXPECT_TRUE(Serves(*host_));
}

TEST_F(RegistryClockStepTest, AfterAnOfflineStartAWrongRegistryClockDoesNotChangeTheBound) {
  StartHolder(Options());
  host_.reset();
  clock_.StepWall(2 * kADay);
  host_ = std::make_unique<ClaimHost>(tree_, *machine_, disk_, Options(), ++seed_);
  host_->link().Disconnect();
  Pass(Milliseconds(1'000));
  ASSERT_TRUE(host_->Told(ClaimEvent::Kind::kOffline));
  host_->link().Reconnect();
  Pass(2 * Options().window);
  EXPECT_TRUE(Serves(*host_)) << host_->status().reason;
  EXPECT_LE(BoundInRegistry(), machine_->Wall() + Options().window);
  EXPECT_GT(host_->status().registry_clock_off, kADay);
}

TEST_F(RegistryClockStepTest, ARenewalWithABoundBarelyAheadCountsAsFailedWithAReason) {
  ClaimOptions options = Options();
  options.window = 6 * kAnHour;
  StartHolder(options);
  // The id clock follows a large step that has lasted for a while without contradiction.
  for (int jumps = 0; jumps < 4; ++jumps) {
    machine_->StepWall(kAnHour * 11 / 2);
    Pass(options.window / 10, Milliseconds(1'000));
  }
  const ClaimStatus status = host_->status();
  ASSERT_EQ(status.state, ClaimState::kHolding) << status.reason;
  EXPECT_GT(status.renewals.failed, 0u);
  EXPECT_LT(status.renewals.failed, 10u) << "retried at the ordinary pace";
  EXPECT_NE(status.reason.find("more than a day ahead"), std::string::npos) << status.reason;
}

}  // namespace
}  // namespace firn
