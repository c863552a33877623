// Tests a keeper with faulty registries, files or other claimants.

#include <set>

#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

TEST_F(ClaimKeeperTest, AfterAWipeIssuesUpToTheBoundOnly) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  tree_.Wipe();
  Run(Milliseconds(500), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kLapsing);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
  EXPECT_TRUE(Serves(*host));
  Run(bound - clock_.Wall() + Milliseconds(3'000), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kSeeking);
  EXPECT_FALSE(Serves(*host));
  EXPECT_NE(host->status().reason.find("firn restore"), std::string::npos) << host->status().reason;
}

TEST_F(ClaimKeeperTest, FreezesARolledBackRegistryUntilTheRestore) {
  auto host = Start();
  Run(Milliseconds(2'000), *host);
  const auto backup = tree_.Save();
  Run(Milliseconds(120'000), *host);
  const WallMs bound = host->status().bound;
  tree_.Load(backup);
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Meta().frozen);
  EXPECT_EQ(host->keeper().state(), ClaimState::kLapsing);
  EXPECT_TRUE(Serves(*host));
  MemoryDisk other_disk;
  auto other = Start(other_disk, Options("b"));
  Run(Milliseconds(3'000), {host.get(), other.get()});
  EXPECT_FALSE(Serves(*other));
  AsOperator([&](BlockingCoordinator& registry) {
    const auto restored =
        RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{bound}}}, entropy_);
    ASSERT_TRUE(restored.ok()) << restored.status();
    EXPECT_GE(restored->floor, bound);
  });
  EXPECT_FALSE(Meta().frozen);
  Run(Milliseconds(4'000), {host.get(), other.get()});
  EXPECT_TRUE(Serves(*other)) << other->status().reason;
  EXPECT_GE(Layout::Firn().StartOf(other->user().claim().first_tick()), bound);
  Run(bound - clock_.Wall() + Milliseconds(3'000), {host.get(), other.get()});
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_GE(Layout::Firn().StartOf(host->user().claim().first_tick()), Meta().floor);
}

TEST_F(ClaimKeeperTest, ANewRootVersionEndsTheRenewalsOfEarlierClaims) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  Write1(kMetaPath, FormatMeta(Meta()));
  Run(Milliseconds(2'000), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kLapsing);
  EXPECT_EQ(host->status().bound, bound);
  EXPECT_TRUE(Serves(*host));
  const Slot slot = *host->status().slot;
  Run(bound - clock_.Wall() + Milliseconds(500), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_EQ(*host->status().slot, slot);
}

TEST_F(ClaimKeeperTest, RefusesToClaimWithAReason) {
  const auto refused = [&](const std::string& word) {
    auto host = Start();
    Run(Milliseconds(3'000), *host);
    EXPECT_EQ(host->user().has_claim(), false);
    EXPECT_NE(host->status().reason.find(word), std::string::npos) << host->status().reason;
  };
  ClusterMeta meta = Meta();
  const ClusterMeta good = meta;
  meta.frozen = true;
  meta.reason = "because";
  Write1(kMetaPath, FormatMeta(meta));
  refused("because");
  meta = good;
  meta.layout = "twitter";
  Write1(kMetaPath, FormatMeta(meta));
  refused("twitter");
  Write1(kMetaPath, "rubbish");
  refused("root node");
  Write1(kMetaPath, FormatMeta(good));
  disk_.hint = FormatHint({0, {0, 0}, "00000000-0000-4000-8000-000000000000", "firn"});
  refused("belongs to cluster");
  disk_.hint.reset();
  tree_.Wipe();
  refused("no cluster");
}

TEST_F(ClaimKeeperTest, RefusesToClaimWithAWrongClock) {
  VirtualClock slow(kStart - Milliseconds(11'000));
  ClaimHost host(tree_, slow, disk_, Options(), 1);
  for (int i = 0; i < 100; ++i) host.Step();
  EXPECT_FALSE(host.user().has_claim());
  const std::string reason = host.status().reason;
  EXPECT_NE(reason.find("11 s behind"), std::string::npos) << reason;
  EXPECT_NE(reason.find("correct the clock"), std::string::npos) << reason;
}

TEST_F(ClaimKeeperTest, AnUnwritableGrantFileIsRemovedAndNotUsed) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  disk_.grant_writes_fail = true;
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Serves(*host));
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
  EXPECT_EQ(host->status().limit, host->status().bound);
  EXPECT_NE(host->status().grant_trouble.find("no space on the disk"), std::string::npos);
  EXPECT_EQ(host->status().reason, "");
  host.reset();
  disk_.grant_writes_fail = false;
  host = Start();
  Run(Milliseconds(100), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kInherited));
}

TEST_F(ClaimKeeperTest, StopsAtItsLimitIfTheGrantFileCannotBeWrittenOrRemoved) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  disk_.grant_writes_fail = disk_.grant_removal_fails = true;
  Run(Milliseconds(500), *host);
  EXPECT_FALSE(Serves(*host));
  const ClaimStatus stuck = host->status();
  EXPECT_EQ(stuck.left, Milliseconds(0));
  EXPECT_EQ(stuck.reason, stuck.grant_trouble);
  EXPECT_NE(stuck.reason.find("no space on the disk"), std::string::npos) << stuck.reason;
  EXPECT_NE(stuck.reason.find("the disk is read-only"), std::string::npos) << stuck.reason;
  const std::string why = host->user().claim().end().why;
  EXPECT_NE(why.find("neither written nor removed"), std::string::npos) << why;
  EXPECT_FALSE(host->user().claim().end().passes) << "a call would wait in vain";
  disk_.grant_writes_fail = false;
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(Serves(*host));
  EXPECT_GT(host->status().left, Milliseconds(0));
  EXPECT_EQ(host->status().grant_trouble, "");
}

TEST_F(ClaimKeeperTest, SkipsAPoisonedSlotWithAnAlarm) {
  MakeClusterWith(2);
  SlotRecord poison;
  poison.nonce = Nonce(1, 1);
  poison.bound = kStart + Milliseconds(100'000'000);
  Write1(SlotPath({0, 0}), FormatSlotRecord(poison));
  SlotRecord used;
  used.bound = kStart - Milliseconds(1);
  Write1(SlotPath({0, 1}), FormatSlotRecord(used));
  auto host = Start();
  Run(Milliseconds(100), *host);
  ASSERT_TRUE(host->user().has_claim());
  EXPECT_EQ(host->status().slot->worker, 1u);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
}

TEST_F(ClaimKeeperTest, UnreadableSlotsAndForeignChildrenAreSkipped) {
  MakeClusterWith(2);
  Write1(SlotPath({0, 0}), std::string(100'000, 'x'));
  AsOperator([&](BlockingCoordinator& registry) {
    for (const char* name : {"x", "01", "-1", "1024", "99999999999"}) {
      ASSERT_TRUE(registry
                      .Multi({Write::Create(RackPath(0) + "/" + name, FormatSlotRecord({}),
                                            Lifetime::kPersistent)})
                      .status.ok());
    }
  });
  auto host = Start();
  Run(Milliseconds(100), *host);
  ASSERT_TRUE(host->user().has_claim()) << host->status().reason;
  EXPECT_EQ(host->status().slot->worker, 1u);
}

TEST_F(ClaimKeeperTest, ASeventeenthClaimantWaitsForOneOfSixteenSlots) {
  MakeClusterWith(16);
  std::vector<MemoryDisk> disks(17);
  std::vector<std::unique_ptr<ClaimHost>> hosts;
  std::vector<ClaimHost*> all;
  for (size_t i = 0; i < disks.size(); ++i) {
    hosts.push_back(Start(disks[i], Options("h" + std::to_string(i))));
    all.push_back(hosts.back().get());
  }
  Run(Milliseconds(8'000), all);
  std::set<uint32_t> machines;
  ClaimHost* waiting = nullptr;
  for (ClaimHost* host : all) {
    if (host->user().has_claim()) {
      machines.insert(host->status().machine->value());
    } else {
      waiting = host;
    }
  }
  EXPECT_EQ(machines.size(), 16u);
  ASSERT_NE(waiting, nullptr);
  EXPECT_NE(waiting->status().reason.find("16 have a bound ahead"), std::string::npos)
      << waiting->status().reason;
  ClaimHost* leaving = all[0] == waiting ? all[1] : all[0];
  leaving->keeper().Release(leaving->Time());
  Run(Milliseconds(8'000), all);
  EXPECT_TRUE(waiting->user().has_claim()) << waiting->status().reason;
}

TEST_F(ClaimKeeperTest, AProbationEndsWithACheckOfTheSlot) {
  ClaimOptions options = Options();
  options.probation = Milliseconds(2'000);
  auto host = Start(disk_, options);
  Run(Milliseconds(1'900), *host);
  EXPECT_FALSE(host->user().has_claim());
  Run(Milliseconds(300), *host);
  EXPECT_TRUE(host->user().has_claim());
}

TEST_F(ClaimKeeperTest, AProbationLongerThanTheFirstWindowDoesNotUseTheClaimUp) {
  ClaimOptions options = Options();
  options.window = Milliseconds(6'000);
  options.probation = Milliseconds(20'000);
  auto host = Start(disk_, options);
  Run(Milliseconds(20'300), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  Run(Milliseconds(10'000), *host);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kLost));
}

// A wiped and re-created registry repeats the same versions. The simulation found this case.
TEST_F(ClaimKeeperTest, AnAttemptEndsWithItsSession) {
  auto host = Start();
  host->link().Script(Verb::kMulti, {});
  host->link().Script(Verb::kMulti, {Fate::Kind::kRequestLost, {}, Milliseconds(100)});
  Run(Milliseconds(50), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kClaiming);
  tree_.Wipe();
  const WallMs floor = clock_.Wall() + Milliseconds(1'000'000);
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(
        MakeCluster(registry, {.rack_bits = 0, .workers = 4, .floor = floor}, entropy_).ok());
  });
  Run(Milliseconds(2'000), *host);
  ASSERT_TRUE(host->user().has_claim()) << host->status().reason;
  EXPECT_GE(host->user().claim().first_tick(), Layout::Firn().FirstTickFrom(floor));
}

TEST_F(ClaimKeeperTest, ARegistryThatFailsDuringAStartDoesNotBlockIt) {
  auto host = Start();
  Run(Milliseconds(500), *host);
  const MachineId machine = *host->status().machine;
  host.reset();
  host = Start();
  host->link().Script(Verb::kSync, {Fate::Kind::kRequestLost, {}, Milliseconds(50)});
  Run(Milliseconds(10), *host);
  host->link().Disconnect();
  Run(Milliseconds(800), *host);
  ASSERT_TRUE(host->user().has_claim()) << host->status().reason;
  EXPECT_EQ(*host->status().machine, machine);
}

}  // namespace
}  // namespace firn
