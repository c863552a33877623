#include "tests/registry/claim/claim_keeper_fixture.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// Claims with wrong clocks.
class ClaimClockTest : public ClaimKeeperTest {
 protected:
  // Returns how far a host's ids are ahead of the registry's clock.
  Milliseconds Lead(ClaimHost& host) { return host.user().Time() - clock_.Wall(); }

  // Kills a host and restarts it with a clock that is wrong by `off`, with or without the registry.
  std::unique_ptr<ClaimHost> StartAgain(Milliseconds off, bool connected, ClaimOptions options) {
    auto host = Start();
    Run(kAMoment, *host);
    host.reset();
    machine_.emplace(clock_.Wall() + off, clock_.Boot());
    host = std::make_unique<ClaimHost>(tree_, *machine_, disk_, std::move(options), ++seed_);
    if (!connected) host->link().Disconnect();
    Pass(kAMoment, *host);
    return host;
  }
  // Advances the registry's clock and that of a host with its own clock.
  void Pass(Milliseconds time, ClaimHost& host) {
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(10)) {
      clock_.Advance(Milliseconds(10));
      machine_->Advance(Milliseconds(10));
      host.Step();
    }
  }

  std::optional<VirtualClock> machine_;
};

TEST_F(ClaimClockTest, UsesTheCorrectedClockIfItWasWrongOnlyBeforeTheClaim) {
  for (const Milliseconds off : {8 * kAnHour, 80 * 365 * kADay, -80 * kADay}) {
    MakeClusterWith(4);
    disk_ = {};
    clock_.StepWall(off);
    auto host = Start();
    host->link().Disconnect();
    Run(Milliseconds(4'000), *host);
    clock_.StepWall(-off);
    host->link().Reconnect();
    Run(Milliseconds(5'000), *host);
    ASSERT_TRUE(Serves(*host)) << host->status().reason;
    EXPECT_EQ(Lead(*host), Milliseconds(0));
    EXPECT_LT(host->status().bound, clock_.Wall() + kAnHour);
  }
}

TEST_F(ClaimClockTest, TheIdClockIsNotSetBackAfterIdsWereIssued) {
  auto host = Start();
  Run(kAMoment, *host);
  const Step last = host->user().Take(1);
  ASSERT_EQ(last.kind, Step::Kind::kTaken);
  host->link().Disconnect();
  Run(host->status().left + kAMoment, *host);
  const WallMs before = host->user().Time();
  clock_.StepWall(-kAnHour);
  host->link().Reconnect();
  Run(Milliseconds(5'000), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_GT(host->user().Time(), before);
}

TEST_F(ClaimClockTest, WithinOneBootTheGrantDeterminesTheTime) {
  for (const bool connected : {true, false}) {
    for (const Milliseconds off : {2 * kADay, -2 * kADay}) {
      MakeClusterWith(4);
      disk_ = {};
      auto host = StartAgain(off, connected, Options());
      EXPECT_TRUE(
          host->Told(connected ? ClaimEvent::Kind::kInherited : ClaimEvent::Kind::kOffline));
      ASSERT_TRUE(Serves(*host)) << host->status().reason;
      EXPECT_LT(Lead(*host), Milliseconds(1'000));
      EXPECT_LT(host->status().bound, clock_.Wall() + kAnHour);
    }
  }
}

TEST_F(ClaimClockTest, ChecksTheWallClockIfTheGrantCannotDetermineTheTime) {
  ClaimOptions elsewhere = Options();
  elsewhere.time_namespace = 4'711;
  auto host = StartAgain(Milliseconds(0), true, elsewhere);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kInherited));
  host.reset();

  host = StartAgain(2 * kADay, true, elsewhere);
  EXPECT_FALSE(host->user().has_claim());
  EXPECT_NE(host->status().reason.find("correct the clock"), std::string::npos)
      << host->status().reason;
  host.reset();

  host = StartAgain(2 * kADay, false, elsewhere);
  EXPECT_FALSE(host->user().has_claim()) << "no registry to check the clock";
}

TEST_F(ClaimClockTest, SetsNoBoundMoreThanADayAheadOfTheRegistrysClock) {
  machine_.emplace(clock_.Wall(), clock_.Boot());
  auto host = std::make_unique<ClaimHost>(tree_, *machine_, disk_, Options(), ++seed_);
  Pass(kAMoment, *host);
  ASSERT_TRUE(Serves(*host));
  const Slot slot = *host->status().slot;
  machine_->StepWall(3 * kADay);
  // The id clock follows a larger step that has lasted for a while without contradiction.
  Pass(Milliseconds(60'000), *host);
  ASSERT_GT(Lead(*host), 2 * kADay);
  EXPECT_LE(RecordOf(slot.worker).bound, clock_.Wall() + kADay);
  EXPECT_FALSE(Serves(*host));
  // Its ids are so far ahead that every claim would be poison, even with a correct clock.
  machine_->StepWall(-3 * kADay);
  Pass(Milliseconds(10'000), *host);
  EXPECT_FALSE(host->user().has_claim());
  EXPECT_NE(host->status().reason.find("restart the server"), std::string::npos)
      << host->status().reason;
  for (uint32_t worker = 0; worker < 4; ++worker) {
    EXPECT_LE(RecordOf(worker).bound, clock_.Wall() + kADay);
  }
  host.reset();
  disk_ = {};
  host = std::make_unique<ClaimHost>(tree_, *machine_, disk_, Options("b"), ++seed_);
  Pass(kAMoment, *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
}

TEST_F(ClaimClockTest, AfterARestoreNoClaimIssuesBeforeTheRestoreProbationEnds) {
  ClaimOptions options = Options();
  options.restore_probation = Milliseconds(10'000);
  for (const Milliseconds age : {Milliseconds(0), Milliseconds(7'000)}) {
    MakeClusterWith(4);
    disk_ = {};
    ClusterMeta restored = Meta();
    restored.floor = clock_.Wall() + kAnHour;
    Write1(kMetaPath, FormatMeta(restored));
    clock_.Advance(age);
    auto host = Start(disk_, options);
    Run(Milliseconds(9'900) - age, *host);
    EXPECT_FALSE(host->user().has_claim());
    Run(Milliseconds(200), *host);
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
    EXPECT_LT(std::chrono::abs(host->clock_lead()), Milliseconds(100))
        << "of a clock that is right";
  }
}

TEST_F(ClaimClockTest, OtherStartsHaveNoRestoreProbation) {
  ClaimOptions options = Options();
  options.restore_probation = Milliseconds(10'000);
  auto host = Start(disk_, options);
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(Serves(*host)) << "never restored";

  ClusterMeta restored = Meta();
  restored.floor = clock_.Wall() + kAnHour;
  Write1(kMetaPath, FormatMeta(restored));
  Run(Milliseconds(10'000), *host);
  MemoryDisk other;
  auto late = Start(other, options);
  Run(Milliseconds(100), *late);
  EXPECT_TRUE(Serves(*late)) << "restored a while ago";
  // A holder from before the restore issues ids up to its bound, then claims again without a gap.
  for (int i = 0; i < 100; ++i) {
    Run(Milliseconds(200), *host);
    ASSERT_TRUE(Serves(*host)) << host->status().reason;
  }
}

TEST_F(ClaimClockTest, RefusesAClockThatIsSetWrongDuringTheClockCheck) {
  auto host = Start();
  host->link().Script(Verb::kMulti, {Fate::Kind::kDone, {}, Milliseconds(2'000)});
  Run(Milliseconds(1'000), *host);
  clock_.StepWall(kAnHour);
  Run(Milliseconds(1'500), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kClaimed));
  EXPECT_NE(host->status().reason.find("correct the clock"), std::string::npos)
      << host->status().reason;
  clock_.StepWall(-kAnHour);
  Run(Milliseconds(10'000), *host);
  ASSERT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_EQ(Lead(*host), Milliseconds(0));
}

// The clock is set wrong between the comparison and the claim. In between, the boot clock measures
// the registry's time.
TEST_F(ClaimClockTest, AClockSetWrongAfterTheClockCheckDoesNotChangeTheBound) {
  machine_.emplace(clock_.Wall(), clock_.Boot());
  ClaimHost host(tree_, *machine_, disk_, Options(), ++seed_);
  host.link().Script(Verb::kSync, {Fate::Kind::kDone, {}, Milliseconds(2'000)});
  Pass(Milliseconds(1'000), host);
  ASSERT_FALSE(host.user().has_claim());
  machine_->StepWall(kAnHour);
  Pass(Milliseconds(1'500), host);
  ASSERT_TRUE(Serves(host)) << host.status().reason;
  EXPECT_LT(host.status().bound, clock_.Wall() + Milliseconds(60'000));
}

TEST_F(ClaimClockTest, AClockSetWrongAfterTheClockCheckDoesNotMakeHeldSlotsFree) {
  MakeClusterWith(1);
  auto holder = Start();
  Run(kAMoment, *holder);
  ASSERT_TRUE(Serves(*holder)) << holder->status().reason;
  machine_.emplace(clock_.Wall(), clock_.Boot());
  MemoryDisk disk;
  ClaimHost other(tree_, *machine_, disk, Options("other"), ++seed_);
  other.link().Script(Verb::kSync, {Fate::Kind::kDone, {}, Milliseconds(2'000)});
  Pass(Milliseconds(1'000), other);
  machine_->StepWall(kAnHour);
  Pass(Milliseconds(1'500), other);
  EXPECT_FALSE(other.user().has_claim());
  Run(kAMoment, *holder);
  EXPECT_TRUE(Serves(*holder)) << holder->status().reason;
}

// Other servers compute the cluster's time from the floor and the time since the restore. With
// policy strict, an id clock stops at the floor until the wall clock reaches it.
TEST_F(ClaimClockTest, AHolderWithAStoppedIdClockKeepsItsSlot) {
  MakeClusterWith(1);
  ClusterMeta meta = Meta();
  meta.floor = clock_.Wall() + kAnHour;
  Write1(kMetaPath, FormatMeta(meta));
  ClaimHost holder(tree_, clock_, disk_, Options("holder"), ++seed_,
                   {.policy = ClockPolicy::kStrict});
  Run(kAMoment, holder);
  MemoryDisk disk;
  auto other = Start(disk, Options("other"));
  const Milliseconds longer_than_a_window = 2 * Options().window;
  Run(longer_than_a_window, {&holder, other.get()});
  EXPECT_EQ(holder.user().Time(), meta.floor);
  EXPECT_FALSE(holder.Told(ClaimEvent::Kind::kLost));
  EXPECT_FALSE(other->Told(ClaimEvent::Kind::kClaimed));
  EXPECT_GT(RecordOf(0).bound, meta.floor + longer_than_a_window);
}

}  // namespace
}  // namespace firn
