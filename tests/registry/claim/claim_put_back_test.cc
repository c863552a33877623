// Tests a server that starts after the registry's data were restored from a backup while it was
// stopped. Its hint contains the earlier state of the data.

#include "registry/cluster/past_holders.h"
#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

class ClaimPutBackTest : public ClaimKeeperTest {
 protected:
  // Runs a server that issues ids for a while and stops cleanly. Returns the end of its ids.
  WallMs IssueAndStop() {
    auto host = Start();
    Run(Milliseconds(10'000), *host);
    EXPECT_TRUE(Serves(*host));
    const uint32_t worker = host->status().slot->worker;
    host->keeper().Release(host->Time());
    Run(kAMoment, *host);
    return RecordOf(worker).bound;
  }
  bool ServesWithin(ClaimHost& host, Milliseconds time) {
    Run(time, host);
    return host.status().state == ClaimState::kHolding && Serves(host);
  }
  void Restore() {
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(RestoreCluster(registry, {.now = clock_.Wall()}, entropy_).ok());
    });
  }
};

TEST_F(ClaimPutBackTest, StartsIfTheRegistryHasLostNoData) {
  IssueAndStop();
  auto host = Start();
  EXPECT_TRUE(ServesWithin(*host, kAMoment));
  EXPECT_FALSE(Meta().frozen);
}

TEST_F(ClaimPutBackTest, FreezesTheClusterWhenTheBoundOfItsSlotIsLowerThanItsIds) {
  const auto before = tree_.Save();
  IssueAndStop();
  tree_.Load(before);
  auto host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
  EXPECT_TRUE(AsksForRestore(host->status())) << host->status().reason;
  Restore();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(10'000))) << host->status().reason;
}

// A copy of the server released the slot with a bound below the ids that this server has issued.
TEST_F(ClaimPutBackTest, StartsIfAReleaseHasLoweredTheBoundOfItsSlot) {
  const WallMs last = IssueAndStop();
  uint32_t worker = 0;
  while (RecordOf(worker).bound != last) ++worker;
  SlotRecord released = RecordOf(worker);
  released.bound = last - Milliseconds(5'000);
  Write1(SlotPath({0, worker}), FormatSlotRecord(released));
  auto host = Start();
  EXPECT_TRUE(ServesWithin(*host, kAMoment));
  EXPECT_FALSE(Meta().frozen) << Meta().reason;

  // Another process has claimed the slot since.
  host.reset();
  disk_.identity.boot_id = "boot-2";
  PastHolders past;
  past.Add({"a",
            "",
            1,
            released.since,
            RecordOf(worker).since,
            {},
            RecordOf(worker).nonce,
            tree_.Peek(SlotPath({0, worker}))->stat.version});
  SlotRecord other = RecordOf(worker);
  other.nonce = other.word = Nonce(9, 9);
  other.writer.reset();
  other.bound = other.since = last - Milliseconds(3'000);
  Write1(PastPath({0, worker}), past.Text());
  Write1(SlotPath({0, worker}), FormatSlotRecord(other));
  host = Start();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(5'000))) << host->status().reason;
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

// The slot's next holder has a higher bound than this server had.
TEST_F(ClaimPutBackTest, FreezesTheClusterWhenAnotherClaimedItsSlotBelowItsIds) {
  const auto before = tree_.Save();
  const WallMs last = IssueAndStop();
  uint32_t worker = 0;
  while (RecordOf(worker).bound != last) ++worker;
  tree_.Load(before);
  SlotRecord other{.nonce = Nonce(9, 9), .word = Nonce(9, 9), .owner = "b"};
  other.since = last - Milliseconds(5'000);
  other.bound = last + Milliseconds(600'000);
  Write1(SlotPath({0, worker}), FormatSlotRecord(other));
  tree_.SetVersion(SlotPath({0, worker}), 1'000);
  auto host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
  EXPECT_NE(Meta().reason.find("was claimed below"), std::string::npos) << Meta().reason;
}

TEST_F(ClaimPutBackTest, FreezesTheClusterWhenTheRootNodeIsOlderInItsEra) {
  Write1(kMetaPath, FormatMeta(Meta()));
  const int64_t version = tree_.Peek(kMetaPath)->stat.version;
  IssueAndStop();
  tree_.SetVersion(kMetaPath, version - 1);
  auto host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
  Restore();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(10'000))) << host->status().reason;
}

TEST_F(ClaimPutBackTest, FreezesAnotherEraWhoseFloorIsBelowItsIds) {
  const WallMs last = IssueAndStop();
  AsOperator([&](BlockingCoordinator& registry) {
    MetaAsRead read = *ReadMeta(registry);
    read.meta.floor = last - Milliseconds(5'000);
    ASSERT_TRUE(BeginEra(registry, read.meta, read.version, entropy_).ok());
  });
  auto host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
  Restore();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(10'000))) << host->status().reason;
}

TEST_F(ClaimPutBackTest, FreezesTheClusterWhenTheRecordOfItsSlotIsMissing) {
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  const Slot slot = *host->status().slot;
  host->keeper().Release(host->Time());
  Run(kAMoment, *host);
  AsOperator([&](BlockingCoordinator& registry) {
    const std::vector<Write> erase{Write::Erase(SlotPath(slot), Write::kAnyVersion)};
    ASSERT_TRUE(registry.Multi(erase).status.ok());
  });
  host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
}

// A restore that retires the machine id need not set the floor above its ids.
TEST_F(ClaimPutBackTest, StartsIfAnotherEraHasRetiredItsSlot) {
  const WallMs last = IssueAndStop();
  SlotRecord record = RecordOf(0);
  uint32_t worker = 0;
  while (record.bound != last) record = RecordOf(++worker);
  record.retired = true;
  Write1(SlotPath({0, worker}), FormatSlotRecord(record));
  AsOperator([&](BlockingCoordinator& registry) {
    MetaAsRead read = *ReadMeta(registry);
    read.meta.floor = last - Milliseconds(5'000);
    ASSERT_TRUE(BeginEra(registry, read.meta, read.version, entropy_).ok());
  });
  auto host = Start();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(10'000))) << host->status().reason;
  EXPECT_FALSE(Meta().frozen);
  EXPECT_NE(host->status().slot->worker, worker);
}

// The hint could not be written since the restore, so it names the previous era. The grant, which
// is in memory, names the present one.
TEST_F(ClaimPutBackTest, AnOfflineStartNotesNoIdsInTheEraOfAnOlderHint) {
  ClaimOptions options = Options();
  options.window = Milliseconds(20'000);
  auto host = Start(disk_, options);
  Run(Milliseconds(10'000), *host);
  disk_.hint_writes_fail = true;
  const Nonce era = Meta().era;
  Restore();
  ASSERT_NE(Meta().era, era);
  Run(Milliseconds(100'000), *host);
  ASSERT_EQ(host->status().state, ClaimState::kHolding) << host->status().reason;
  ASSERT_TRUE(Serves(*host));
  host.reset();
  disk_.hint_writes_fail = false;
  host = Start(disk_, options);
  host->link().Disconnect();
  Run(Milliseconds(600), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  ASSERT_TRUE(Serves(*host));
  Run(Milliseconds(100'000), *host);
  host->link().Reconnect();
  EXPECT_TRUE(ServesWithin(*host, Milliseconds(10'000))) << host->status().reason;
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

// The hint lacks at most the ids of the last minute before a crash.
TEST_F(ClaimPutBackTest, AKilledServerKnowsTheIdsOfAMinuteAgo) {
  const auto before = tree_.Save();
  auto host = Start();
  Run(Milliseconds(10'000), *host);
  ASSERT_TRUE(Serves(*host));
  Run(Milliseconds(61'000), *host);
  host.reset();
  disk_.identity.boot_id = "boot-2";
  tree_.Load(before);
  clock_.Advance(Milliseconds(900'000));
  host = Start();
  EXPECT_FALSE(ServesWithin(*host, Milliseconds(10'000)));
  EXPECT_TRUE(Meta().frozen);
}

}  // namespace
}  // namespace firn
