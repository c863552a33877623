#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr Fate kAnswerLost{Fate::Kind::kAnswerLost, {}, {}};

TEST_F(ClaimKeeperTest, ClaimsASlotAndServes) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_TRUE(Serves(*host));
  const ClaimStatus status = host->status();
  const SlotRecord record = RecordOf(status.slot->worker);
  EXPECT_EQ(record.nonce, status.nonce);
  EXPECT_EQ(record.bound, status.bound);
  EXPECT_EQ(record.owner, "a");
  EXPECT_TRUE(tree_.Peek(LivePath(*status.slot)).has_value());
  EXPECT_TRUE(disk_.hint.has_value());
}

TEST_F(ClaimKeeperTest, RenewsWithAGrowingWindow) {
  auto host = Start();
  Run(Milliseconds(50), *host);
  EXPECT_LE(host->status().left, Milliseconds(15'000));
  Run(Milliseconds(1'000), *host);
  EXPECT_GT(host->status().left, Milliseconds(50'000));
  EXPECT_LE(host->status().left, Milliseconds(60'000));
  Run(Milliseconds(5'000), *host);
  EXPECT_GT(host->status().left, Milliseconds(590'000));
  Run(Milliseconds(100'000), *host);
  EXPECT_GT(host->status().left, Milliseconds(560'000));
}

TEST_F(ClaimKeeperTest, IssuesUpToTheBoundWhileTheRegistryIsUnreachable) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  host->link().Disconnect();
  Run(bound - clock_.Wall() - Milliseconds(20), *host);
  EXPECT_TRUE(Serves(*host));
  Run(Milliseconds(40), *host);
  EXPECT_EQ(host->user().Take(1).kind, Step::Kind::kClaimEnds);
  EXPECT_EQ(host->status().left, Milliseconds(0));
  const MachineId machine = *host->status().machine;
  host->link().Reconnect();
  Run(Milliseconds(200), *host);
  EXPECT_TRUE(Serves(*host));
  EXPECT_EQ(*host->status().machine, machine);
}

TEST_F(ClaimKeeperTest, AKilledProcessInheritsItsMachineIdAboveTheIdsUsed) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const MachineId machine = *host->status().machine;
  const WallMs limit = host->status().limit;
  host.reset();
  clock_.StepWall(Milliseconds(-3'600'000));
  host = Start();
  Run(Milliseconds(50), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kInherited));
  EXPECT_EQ(*host->status().machine, machine);
  EXPECT_EQ(host->user().claim().first_tick(), Layout::Firn().FirstTickFrom(limit));
  EXPECT_TRUE(Serves(*host));
}

TEST_F(ClaimKeeperTest, AKilledProcessResumesWithoutTheRegistry) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const ClaimStatus before = host->status();
  host.reset();
  host = Start();
  host->link().Disconnect();
  Run(Milliseconds(400), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  EXPECT_TRUE(Serves(*host));
  EXPECT_EQ(host->status().nonce, before.nonce);
  EXPECT_EQ(host->status().bound, before.bound);
  host->link().Reconnect();
  Run(Milliseconds(500), *host);
  EXPECT_GT(host->status().bound, before.bound);
  EXPECT_EQ(RecordOf(host->status().slot->worker).nonce, before.nonce);
  EXPECT_EQ(tree_.Peek(LivePath(*before.slot))->stat.ephemeral_owner, host->session());
}

TEST_F(ClaimKeeperTest, AnOfflineStartCanBeDisabled) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  host.reset();
  ClaimOptions options = Options();
  options.offline_start = false;
  host = Start(disk_, options);
  host->link().Disconnect();
  Run(Milliseconds(2'000), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kSeeking);
}

TEST_F(ClaimKeeperTest, ACopiedGrantFileIsNotTrusted) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  MemoryDisk copy = disk_;
  copy.identity.file.inode = 99;
  auto thief = Start(copy, Options("b"));
  Run(Milliseconds(500), {host.get(), thief.get()});
  ASSERT_EQ(thief->keeper().state(), ClaimState::kHolding) << thief->status().reason;
  EXPECT_NE(*thief->status().machine, *host->status().machine);
  EXPECT_TRUE(Serves(*host));
}

TEST_F(ClaimKeeperTest, ABackupOfTheGrantFileRestoredUnderItsInodeNumberIsNotTrusted) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const std::string backup = disk_.grant;
  Run(Milliseconds(20'000), *host);
  const MachineId machine = *host->status().machine;
  for (const bool registry_away : {false, true}) {
    host.reset();
    disk_.grant = backup;
    disk_.identity.file.born_ns += 1'000'000;
    host = Start();
    if (registry_away) host->link().Disconnect();
    Run(Milliseconds(500), *host);
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kInherited));
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kOffline));
    EXPECT_EQ(Serves(*host), !registry_away) << host->status().reason;
    EXPECT_NE(host->status().machine, machine);
  }
}

TEST_F(ClaimKeeperTest, AGrantOfAnotherStateFolderIsNotTrusted) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  host.reset();
  ++disk_.identity.lock.inode;
  host = Start();
  Run(Milliseconds(500), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kInherited));
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kRefused));
}

TEST_F(ClaimKeeperTest, WithoutAPlaceForGrantsAKilledServerClaimsAgainAndReportsIt) {
  disk_.has_grant = false;
  auto host = Start();
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_EQ(host->status().limit, host->status().bound);
  EXPECT_NE(host->status().grant_trouble.find("not on a tmpfs"), std::string::npos);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
  host.reset();
  host = Start();
  Run(Milliseconds(500), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kInherited));
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_EQ(disk_.grant_writes, 0);
}

TEST_F(ClaimKeeperTest, AnUnwritableHintOnlyRaisesAnAlarm) {
  disk_.hint_writes_fail = true;
  auto host = Start();
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
}

TEST_F(ClaimKeeperTest, AGrantFileFromBeforeARebootIsNotTrusted) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const MachineId machine = *host->status().machine;
  host.reset();
  disk_.identity.boot_id = "boot-2";
  host = Start();
  Run(Milliseconds(500), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding);
  EXPECT_NE(*host->status().machine, machine);
}

TEST_F(ClaimKeeperTest, RecognisesItsOwnClaimAfterAnUnknownOutcome) {
  auto host = Start();
  host->link().Script(Verb::kMulti, {});
  host->link().Script(Verb::kMulti, kAnswerLost);
  Run(Milliseconds(100), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_EQ(tree_.Peek(SlotPath(*host->status().slot))->stat.version, 1);
}

TEST_F(ClaimKeeperTest, AdoptsARenewalAfterAnUnknownOutcome) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  host->link().Script(Verb::kMulti, kAnswerLost);
  Run(Milliseconds(800), *host);
  EXPECT_GT(host->status().bound, bound);
  EXPECT_EQ(RecordOf(host->status().slot->worker).bound, host->status().bound);
}

TEST_F(ClaimKeeperTest, StopsAtOnceOnAForeignNonce) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const Slot slot = *host->status().slot;
  SlotRecord foreign = RecordOf(slot.worker);
  foreign.nonce = Nonce(6, 6);
  foreign.owner = "another";
  Write1(SlotPath(slot), FormatSlotRecord(foreign));
  Run(Milliseconds(1'500), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_NE(*host->status().slot, slot);
  EXPECT_EQ(RecordOf(slot.worker), foreign);
}

TEST_F(ClaimKeeperTest, AReleasedSlotIsClaimedAgainAtOnceAboveTheIdsUsed) {
  auto host = Start();
  Run(Milliseconds(20'000), *host);
  ASSERT_TRUE(Serves(*host));
  const auto last = host->user().Last();
  const Slot slot = *host->status().slot;
  host->keeper().Release(host->Time());
  EXPECT_FALSE(Serves(*host));
  Run(Milliseconds(50), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kReleased);
  EXPECT_EQ(RecordOf(slot.worker).bound, Layout::Firn().StartOf(last + 1));
  EXPECT_TRUE(RecordOf(slot.worker).nonce.zero());
  EXPECT_FALSE(tree_.Peek(LivePath(slot)).has_value());
  EXPECT_EQ(disk_.grant.find_first_not_of(' '), std::string::npos) << "the file is removed";
  host.reset();
  host = Start();
  Run(Milliseconds(50), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
  EXPECT_EQ(*host->status().slot, slot);
  EXPECT_GT(host->user().claim().first_tick(), last);
}

TEST_F(ClaimKeeperTest, AStopWithoutTheRegistryLetsTheNextStartResumeTheClaim) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const MachineId machine = *host->status().machine;
  host->link().Disconnect();
  Run(Milliseconds(10), *host);
  host->keeper().Release(host->Time());
  EXPECT_EQ(host->keeper().state(), ClaimState::kReleased);
  host.reset();
  host = Start();
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kInherited));
  EXPECT_EQ(*host->status().machine, machine);
}

TEST_F(ClaimKeeperTest, AnExpiredSessionOnlyRecreatesTheLiveNode) {
  auto host = Start();
  Run(Milliseconds(5'000), *host);
  const ClaimStatus before = host->status();
  tree_.Expire(host->session());
  for (int i = 0; i < 100; ++i) {
    Run(Milliseconds(5), *host);
    ASSERT_TRUE(Serves(*host));
  }
  EXPECT_EQ(host->status().nonce, before.nonce);
  const auto live = tree_.Peek(LivePath(*before.slot));
  ASSERT_TRUE(live.has_value());
  EXPECT_EQ(live->stat.ephemeral_owner, host->session());
}

TEST_F(ClaimKeeperTest, ADeletedLiveNodeIsRecreated) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const Slot slot = *host->status().slot;
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(registry.Multi({Write::Erase(LivePath(slot), Write::kAnyVersion)}).status.ok());
  });
  Run(Milliseconds(65'000), *host);
  EXPECT_TRUE(tree_.Peek(LivePath(slot)).has_value());
}

}  // namespace
}  // namespace firn
