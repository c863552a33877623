// Tests a keeper after the registry has lost data or repeats its numbers, and after its own process
// was interrupted.

#include "registry/claim/static_keeper.h"
#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

class ClaimKeeperLossTest : public ClaimKeeperTest {
 protected:
  WallMs Restore(WallMs reported) {
    WallMs floor;
    AsOperator([&](BlockingCoordinator& registry) {
      const auto restored =
          RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{reported}}}, entropy_);
      ASSERT_TRUE(restored.ok()) << restored.status();
      floor = restored->floor;
    });
    return floor;
  }
  bool StartsOffline() {
    auto host = Start();
    host->link().Disconnect();
    Run(kAMoment, *host);
    return host->Told(ClaimEvent::Kind::kOffline);
  }
  WallMs FirstMoment(ClaimHost& host) {
    return Layout::Firn().StartOf(host.user().claim().first_tick());
  }

  MemoryDisk other_disk_;
};

TEST_F(ClaimKeeperLossTest, AnUnansweredRenewalIsNotRepeatedOverAForeignRecordWithTheSameNumbers) {
  MakeClusterWith(1);
  const auto before = tree_.Save();
  auto host = Start();
  Run(Milliseconds(100), *host);
  Run(Milliseconds(600), *host);
  host->link().Script(Verb::kMulti, {Fate::Kind::kRequestLost, {}, Milliseconds(400)});
  Run(Milliseconds(100), *host);
  tree_.Load(before);
  auto stranger = Start(other_disk_, Options("b"));
  Run(Milliseconds(100), *stranger);
  const SlotRecord theirs = RecordOf(0);
  ASSERT_EQ(theirs.owner, "b");
  ASSERT_EQ(tree_.Peek(SlotPath({0, 0}))->stat.version, 1);
  Run(kAMoment, {host.get(), stranger.get()});
  EXPECT_EQ(RecordOf(0).nonce, theirs.nonce);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_FALSE(Serves(*host));
  EXPECT_TRUE(Serves(*stranger));
}

TEST_F(ClaimKeeperLossTest, ChecksTheSlotBeforeAWriteAfterReconnectingInTheSameSession) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  const Slot slot = *host->status().slot;
  host->link().Disconnect();
  Run(Milliseconds(100), *host);
  SlotRecord foreign = RecordOf(slot.worker);
  foreign.nonce = Nonce(6, 6);
  Write1(SlotPath(slot), FormatSlotRecord(foreign));
  host->link().Reconnect();
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
}

TEST_F(ClaimKeeperLossTest, ClaimsAgainInsteadOfRenewingAPassedBound) {
  ClaimOptions options = Options();
  options.probation = Milliseconds(2'000);
  auto host = ClaimKeeperTest::Start(disk_, options);
  Run(Milliseconds(2'200), *host);
  ASSERT_TRUE(Serves(*host));
  const MachineId machine = *host->status().machine;
  const Nonce nonce = host->status().nonce;
  host->link().Disconnect();
  Run(host->status().left + kAMoment, *host);
  host->link().Reconnect();
  Run(kAMoment, *host);
  EXPECT_FALSE(Serves(*host));
  Run(Milliseconds(2'000), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_EQ(*host->status().machine, machine);
  EXPECT_NE(host->status().nonce, nonce);
}

TEST_F(ClaimKeeperLossTest, AHolderStoppedByALossOfDataVoidsItsGrant) {
  MakeClusterWith(1);
  const auto before = tree_.Save();
  auto host = Start();
  Run(Milliseconds(100), *host);
  tree_.Load(before);
  auto stranger = Start(other_disk_, Options("b"));
  Run(Milliseconds(100), *stranger);
  Run(kAMoment, {host.get(), stranger.get()});
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  host.reset();
  EXPECT_FALSE(StartsOffline());
}

TEST_F(ClaimKeeperLossTest, AStopWhileAClaimLapsesVoidsTheGrant) {
  const auto before = tree_.Save();
  auto host = Start();
  Run(kAMoment, *host);
  tree_.Load(before);
  Run(Milliseconds(2'000), *host);
  ASSERT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
  host->keeper().Release(host->Time());
  host.reset();
  EXPECT_FALSE(StartsOffline());
}

TEST_F(ClaimKeeperLossTest, AGrantOfAStaticMachineIdIsNotInherited) {
  {
    MemoryStateFolder folder(disk_);
    SequencedUser user(clock_, {}, 1);
    StaticKeeper given({.machine = MachineId(2), .first_start = true}, folder, user);
    given.Tick({clock_.Read(), user.Time()});
    ASSERT_TRUE(user.has_claim());
  }
  EXPECT_FALSE(StartsOffline());
  auto host = Start();
  Run(kAMoment, *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

TEST_F(ClaimKeeperLossTest, AGrantOfAnotherClusterDoesNotFreezeThisOne) {
  auto host = Start();
  Run(kAMoment, *host);
  host.reset();
  MakeClusterWith(4);
  disk_.hint.reset();
  host = Start();
  Run(kAMoment, *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

TEST_F(ClaimKeeperLossTest, ChecksTheSlotIfTheConnectionIsLostBetweenAnswerAndTick) {
  auto host = Start();
  const auto in_claim = [&] { return host->keeper().state() == ClaimState::kClaiming; };
  while (!in_claim()) Run(Milliseconds(5), *host);
  // Delivers answers until the attempt has won, without a tick in between.
  while (RecordOf(0).nonce.zero() && RecordOf(1).nonce.zero() && RecordOf(2).nonce.zero() &&
         RecordOf(3).nonce.zero()) {
    Run(Milliseconds(5), *host);
  }
  ASSERT_TRUE(in_claim());
  host->link().Dispatch(Milliseconds(0));
  uint32_t worker = 0;
  while (RecordOf(worker).nonce.zero()) ++worker;
  host->link().Disconnect();
  host->link().Dispatch(Milliseconds(0));
  SlotRecord foreign = RecordOf(worker);
  foreign.nonce = Nonce(6, 6);
  Write1(SlotPath({0, worker}), FormatSlotRecord(foreign));
  host->link().Reconnect();
  Run(Milliseconds(200), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost)) << host->status().reason;
}

TEST_F(ClaimKeeperLossTest, AGrantThatTheRegistryContradictsIsVoidForLaterStarts) {
  const auto before = tree_.Save();
  auto host = Start();
  Run(kAMoment, *host);
  host.reset();
  tree_.Load(before);
  host = Start();
  Run(kAMoment, *host);
  ASSERT_FALSE(Serves(*host));
  EXPECT_TRUE(Meta().frozen);
  host.reset();
  EXPECT_FALSE(StartsOffline());
}

TEST_F(ClaimKeeperLossTest, AnUnansweredInheritIsForeignToALaterOfflineStart) {
  auto host = Start();
  Run(kAMoment, *host);
  const Slot slot = *host->status().slot;
  const Nonce held = RecordOf(slot.worker).nonce;
  host = Start();
  // The base of this write is a limit that the offline start has changed when the write is applied.
  host->link().Script(Verb::kMulti, {Fate::Kind::kLate, Milliseconds(6'000), {}});
  Run(Milliseconds(20), *host);
  host->link().Disconnect();
  Run(Milliseconds(3'000), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  EXPECT_TRUE(Serves(*host));
  Run(Milliseconds(4'000), *host);
  const SlotRecord late = RecordOf(slot.worker);
  ASSERT_NE(late.nonce, held);
  host->link().Reconnect();
  Run(Milliseconds(2'000), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_NE(*host->status().slot, slot);
  EXPECT_EQ(RecordOf(slot.worker), late);
}

TEST_F(ClaimKeeperLossTest, ADeadProcessesLateInheritIsForeignToALaterOfflineStart) {
  auto host = Start();
  Run(kAMoment, *host);
  const Slot slot = *host->status().slot;
  host.reset();
  // The next process sends a write that inherits the claim, and dies. The write arrives after a
  // third process has started offline.
  SlotRecord late = RecordOf(slot.worker);
  late.nonce = Nonce(5, 5);
  host = Start();
  host->link().Disconnect();
  Run(kAMoment, *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  Write1(SlotPath(slot), FormatSlotRecord(late));
  host->link().Reconnect();
  Run(Milliseconds(2'000), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_NE(*host->status().slot, slot);
  EXPECT_EQ(RecordOf(slot.worker), late);
}

TEST_F(ClaimKeeperLossTest, AHolderThatReturnsAfterARestoreDoesNotFreezeAgain) {
  auto host = Start();
  Run(Milliseconds(2'000), *host);
  const auto backup = tree_.Save();
  Run(Milliseconds(60'000), *host);
  host->link().Disconnect();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  tree_.Load(backup);
  const WallMs floor = Restore(bound);
  host->link().Reconnect();
  Run(kAMoment, *host);
  EXPECT_FALSE(Meta().frozen);
  EXPECT_EQ(host->keeper().state(), ClaimState::kLapsing);
  EXPECT_TRUE(Serves(*host));
  EXPECT_EQ(host->status().bound, bound);
  Run(bound - clock_.Wall() + Milliseconds(5'000), *host);
  EXPECT_FALSE(Meta().frozen);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_GE(FirstMoment(*host), floor);
}

TEST_F(ClaimKeeperLossTest, FreezesAgainIfTheFloorIsBelowTheHoldersBound) {
  auto host = Start();
  Run(Milliseconds(2'000), *host);
  const auto backup = tree_.Save();
  Run(Milliseconds(60'000), *host);
  host->link().Disconnect();
  Run(Milliseconds(100), *host);
  tree_.Load(backup);
  ClusterMeta meta = Meta();
  meta.floor = host->status().bound - Milliseconds(1);
  Write1(kMetaPath, FormatMeta(meta));
  host->link().Reconnect();
  Run(kAMoment, *host);
  EXPECT_TRUE(Meta().frozen);
}

TEST_F(ClaimKeeperLossTest, AfterARestoreWithItsRecordAHolderIssuesToTheBoundAndClaimsAgain) {
  auto host = Start();
  Run(Milliseconds(2'000), *host);
  const WallMs bound = host->status().bound;
  const WallMs floor = Restore(bound);
  Run(bound - clock_.Wall() - Milliseconds(100), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kLapsing);
  EXPECT_EQ(host->status().bound, bound);
  EXPECT_TRUE(Serves(*host));
  Run(Milliseconds(5'000), *host);
  EXPECT_FALSE(Meta().frozen);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_GE(FirstMoment(*host), floor);
}

// A registry that was wiped, re-created above all known bounds, and used until its numbers recur.
// It keeps the session of a host that is paused between reading and writing.
class RepeatedNumbersTest : public ClaimKeeperLossTest {
 protected:
  // Makes another process hold the only slot, with the same versions of root node and record.
  void RecreateSlotUnder(ClaimHost& stopped) {
    const ClusterMeta before = Meta();
    const int64_t version = tree_.Peek(SlotPath({0, 0}))->stat.version;
    tree_.Load({}, MemoryTree::Sessions::kStay);
    floor_ = clock_.Wall() + Milliseconds(1'800'000);
    AsOperator([&](BlockingCoordinator& registry) {
      const ClusterPlan plan{.rack_bits = 0, .workers = 1, .uuid = before.uuid, .floor = floor_};
      ASSERT_TRUE(MakeCluster(registry, plan, entropy_).ok());
    });
    for (int64_t i = 1; i < version; ++i) Write1(SlotPath({0, 0}), FormatSlotRecord(RecordOf(0)));
    if (version > 0) {
      SlotRecord theirs = RecordOf(0);
      theirs.nonce = Nonce(6, 6);
      theirs.bound = floor_ + Milliseconds(600'000);
      Write1(SlotPath({0, 0}), FormatSlotRecord(theirs));
    }
    ASSERT_EQ(tree_.Peek(SlotPath({0, 0}))->stat.version, version);
    stands_ = RecordOf(0);
    static_cast<void>(stopped);
  }
  // Pauses the host after it has received the pending answers and read its clocks.
  void StopsInTheMidst(ClaimHost& host) {
    clock_.Advance(Milliseconds(5));
    host.link().Dispatch(Milliseconds(0));
  }
  void WakesUp(ClaimHost& host) { host.keeper().Tick(host.Time()); }

  WallMs floor_;
  SlotRecord stands_;
};

TEST_F(RepeatedNumbersTest, AClaimantThatSleptMeanwhileClaimsNothingBelowTheFloor) {
  for (int rounds = 1; rounds <= 12; ++rounds) {
    MakeClusterWith(1);
    MemoryDisk disk;
    auto host = ClaimKeeperTest::Start(disk, Options());
    for (int i = 0; i < rounds; ++i) {
      clock_.Advance(Milliseconds(5));
      host->Step();
    }
    StopsInTheMidst(*host);
    RecreateSlotUnder(*host);
    WakesUp(*host);
    const SlotRecord after = RecordOf(0);
    EXPECT_TRUE(after == stands_ || after.since >= floor_) << "asleep after " << rounds;
  }
}

TEST_F(RepeatedNumbersTest, AHolderThatSleptMeanwhileRenewsNothing) {
  for (int ms = 700; ms <= 800; ms += 5) {
    MakeClusterWith(1);
    MemoryDisk disk;
    auto host = ClaimKeeperTest::Start(disk, Options());
    Run(Milliseconds(ms), *host);
    ASSERT_TRUE(Serves(*host));
    StopsInTheMidst(*host);
    RecreateSlotUnder(*host);
    WakesUp(*host);
    EXPECT_EQ(RecordOf(0), stands_) << "asleep after " << ms << " ms";
  }
}

// Returns an earlier tick at its end than it has used.
class ForgetfulUser final : public SequencedUser {
 public:
  using SequencedUser::SequencedUser;
  Tick Close() override { return SequencedUser::Close() - 1; }
};

TEST_F(ClaimKeeperLossTest, AUserThatReportsAnEarlierLastTickEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked child would do nothing
  MemoryCoordinator link(tree_);
  MemoryStateFolder folder(disk_);
  ForgetfulUser user(clock_, {}, 1);
  ClaimKeeper keeper(Options(), link, folder, user, entropy_);
  link.OnSession([&](SessionEvent event) { keeper.OnSession(event); });
  const auto now = [&] { return KeeperTime{clock_.Read(), user.Time()}; };
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(Milliseconds(5));
    link.Dispatch(Milliseconds(0));
    keeper.Tick(now());
    user.Take(1);
  }
  ASSERT_EQ(keeper.state(), ClaimState::kHolding);
  keeper.Tick(now());
  EXPECT_DEATH(keeper.Release(now()), "below an earlier report");
}

}  // namespace
}  // namespace firn
