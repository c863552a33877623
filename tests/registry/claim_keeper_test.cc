#include "registry/claim_keeper.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/restore.h"
#include "tests/support/claim_host.h"

namespace firn {
namespace {

constexpr WallMs kStart{1'750'000'000'000};
constexpr Fate kAnswerLost{Fate::Kind::kAnswerLost, {}, {}};

class ClaimKeeperTest : public testing::Test {
 protected:
  void SetUp() override { MakeClusterWith(4); }

  void MakeClusterWith(uint32_t workers) {
    tree_.Wipe();
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    const Status made = MakeCluster(registry, {.rack_bits = 0, .workers = workers}, entropy_);
    ASSERT_TRUE(made.ok()) << made;
  }

  ClaimOptions Options(const std::string& name = "a") {
    return {.identity = {.owner = name, .endpoint = name + ":1", .host = name, .build = "test"}};
  }

  std::unique_ptr<ClaimHost> Start(MemoryDisk& disk, ClaimOptions options) {
    return std::make_unique<ClaimHost>(tree_, clock_, disk, std::move(options), ++seed_);
  }
  std::unique_ptr<ClaimHost> Start() { return Start(disk_, Options()); }

  // Time passes in small steps while the hosts run; in larger ones when it is long.
  void Run(Milliseconds time, const std::vector<ClaimHost*>& hosts) {
    const Milliseconds step(time > Milliseconds(200'000) ? 50 : 5);
    for (Milliseconds passed{0}; passed < time; passed += step) {
      clock_.Advance(step);
      for (ClaimHost* host : hosts) host->Step();
    }
  }
  void Run(Milliseconds time, ClaimHost& host) { Run(time, {&host}); }

  bool Serves(ClaimHost& host) { return host.user().Take(1).kind == Step::Kind::kTaken; }

  SlotRecord RecordOf(uint32_t worker) {
    return *ParseSlotRecord(tree_.Peek(SlotPath({0, worker}))->data);
  }
  ClusterMeta Meta() { return *ParseMeta(tree_.Peek(kMetaPath)->data); }

  template <typename Verb>
  void AsOperator(Verb verb) {
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    verb(registry);
  }
  void Write1(const std::string& path, const std::string& data) {
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(registry.Multi({Write::Set(path, data, Write::kAnyVersion)}).status.ok());
    });
  }

  VirtualClock clock_{kStart};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{7};
  MemoryDisk disk_;
  uint64_t seed_ = 100;
};

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

TEST_F(ClaimKeeperTest, ServesToTheBoundAndNotBeyondWhileTheRegistryIsAway) {
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

TEST_F(ClaimKeeperTest, AKilledProcessInheritsItsMachineIdAboveWhatItUsed) {
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

TEST_F(ClaimKeeperTest, AKilledProcessGoesOnWithoutTheRegistry) {
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

TEST_F(ClaimKeeperTest, AnOfflineStartCanBeForbidden) {
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
  copy.identity.inode = 99;
  auto thief = Start(copy, Options("b"));
  Run(Milliseconds(500), {host.get(), thief.get()});
  ASSERT_EQ(thief->keeper().state(), ClaimState::kHolding) << thief->status().reason;
  EXPECT_NE(*thief->status().machine, *host->status().machine);
  EXPECT_TRUE(Serves(*host));
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

TEST_F(ClaimKeeperTest, AnUnknownClaimIsRecognisedAsItsOwn) {
  auto host = Start();
  host->link().Script(Verb::kMulti, {});
  host->link().Script(Verb::kMulti, kAnswerLost);
  Run(Milliseconds(100), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_EQ(tree_.Peek(SlotPath(*host->status().slot))->stat.version, 1);
}

TEST_F(ClaimKeeperTest, AnUnknownRenewalIsAdopted) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  host->link().Script(Verb::kMulti, kAnswerLost);
  Run(Milliseconds(800), *host);
  EXPECT_GT(host->status().bound, bound);
  EXPECT_EQ(RecordOf(host->status().slot->worker).bound, host->status().bound);
}

TEST_F(ClaimKeeperTest, AForeignNonceStopsItAtOnce) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const Slot slot = *host->status().slot;
  SlotRecord foreign = RecordOf(slot.worker);
  foreign.nonce = Nonce(6, 6);
  foreign.owner = "somebody";
  Write1(SlotPath(slot), FormatSlotRecord(foreign));
  Run(Milliseconds(1'500), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_NE(*host->status().slot, slot);
  EXPECT_EQ(RecordOf(slot.worker), foreign);
}

TEST_F(ClaimKeeperTest, AReleasedSlotIsClaimedAgainAtOnceAboveWhatWasUsed) {
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
  host.reset();
  host = Start();
  Run(Milliseconds(50), *host);
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
  EXPECT_EQ(*host->status().slot, slot);
  EXPECT_GT(host->user().claim().first_tick(), last);
}

TEST_F(ClaimKeeperTest, AStopWithoutTheRegistryLeavesTheClaimToTheNextStart) {
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

TEST_F(ClaimKeeperTest, AnExpiredSessionCostsNothingButANewLiveNode) {
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

TEST_F(ClaimKeeperTest, ADeletedLiveNodeComesBack) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const Slot slot = *host->status().slot;
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(registry.Multi({Write::Erase(LivePath(slot), Write::kAnyVersion)}).status.ok());
  });
  Run(Milliseconds(65'000), *host);
  EXPECT_TRUE(tree_.Peek(LivePath(slot)).has_value());
}

TEST_F(ClaimKeeperTest, AWipedRegistryIsServedToTheBoundAndNoFurther) {
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

TEST_F(ClaimKeeperTest, ARolledBackRegistryIsFrozenUntilItIsRestored) {
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
        RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {bound}}, entropy_);
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

TEST_F(ClaimKeeperTest, APreviousClaimsMetaVersionEndsItsRenewals) {
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
  refused("belongs to the cluster");
  disk_.hint.reset();
  tree_.Wipe();
  refused("no cluster");
}

TEST_F(ClaimKeeperTest, RefusesToClaimWithAnInsaneClock) {
  VirtualClock slow(kStart - Milliseconds(11'000));
  ClaimHost host(tree_, slow, disk_, Options(), 1);
  for (int i = 0; i < 100; ++i) host.Step();
  EXPECT_FALSE(host.user().has_claim());
  EXPECT_NE(host.status().reason.find("set the clock"), std::string::npos) << host.status().reason;
}

TEST_F(ClaimKeeperTest, AnUnwritableGrantFileIsRemovedAndDoneWithout) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  disk_.grant_writes_fail = true;
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Serves(*host));
  EXPECT_TRUE(host->Told(ClaimEvent::Kind::kAlarm));
  EXPECT_EQ(host->status().limit, host->status().bound);
  host.reset();
  disk_.grant_writes_fail = false;
  host = Start();
  Run(Milliseconds(100), *host);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kInherited));
}

TEST_F(ClaimKeeperTest, AGrantFileThatCannotEvenBeRemovedStopsItAtL) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  disk_.grant_writes_fail = disk_.grant_removal_fails = true;
  Run(Milliseconds(500), *host);
  EXPECT_FALSE(Serves(*host));
  disk_.grant_writes_fail = false;
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(Serves(*host));
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

TEST_F(ClaimKeeperTest, ASeventeenthClaimantForSixteenSlotsWaitsForOneToBeFree) {
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
  EXPECT_NE(waiting->status().reason.find("16 in use"), std::string::npos)
      << waiting->status().reason;
  ClaimHost* leaving = all[0] == waiting ? all[1] : all[0];
  leaving->keeper().Release(leaving->Time());
  Run(Milliseconds(8'000), all);
  EXPECT_TRUE(waiting->user().has_claim()) << waiting->status().reason;
}

TEST_F(ClaimKeeperTest, AProbationEndsWithASecondLook) {
  ClaimOptions options = Options();
  options.probation = Milliseconds(2'000);
  auto host = Start(disk_, options);
  Run(Milliseconds(1'900), *host);
  EXPECT_FALSE(host->user().has_claim());
  Run(Milliseconds(300), *host);
  EXPECT_TRUE(host->user().has_claim());
}

}  // namespace
}  // namespace firn
