#include "registry/operate/restore.h"
#include "tests/server/lease/lease_rig.h"

// Tests a killed server that starts while the registry is unreachable (rule 7 of
// registry/claim/WHY-LEASES-HOLD.md). It resumes its own claim, and compares the bounds of its
// earlier leases once it is connected.

namespace firn {
namespace {

class LeaseLossTest : public LeaseTest {
 protected:
  // Starts a server that claims and grants a lease, and kills it. `backup_` is made between claim
  // and lease.
  void GrantAndKill() {
    host_ = Start(disk_, Options("s"));
    Run(Milliseconds(1'000), *host_);
    ASSERT_TRUE(host_->user().has_claim());
    host_.reset();
    backup_ = tree_.Save();
    auto server = StartServer();
    lease_ = Grant(*server, 1);
    server.reset();
  }
  void StartUnreachable() {
    ClaimOptions options = Options("s");
    options.kept = *ParseKeptBounds(lease_disk_.text);
    kept_ = options.kept.highest();
    host_ = Start(disk_, options);
    host_->link().Disconnect();
    Run(Milliseconds(600), *host_);
    ASSERT_TRUE(host_->Told(ClaimEvent::Kind::kOffline));
    ASSERT_TRUE(Serves(*host_));
    EXPECT_FALSE(host_->keeper().checked());
  }
  void ExpectLoss(const std::string& words) {
    host_->link().Reconnect();
    Run(Milliseconds(2'000), *host_);
    EXPECT_TRUE(Meta().frozen);
    EXPECT_NE(Meta().reason.find(words), std::string::npos) << Meta().reason;
    EXPECT_EQ(host_->status().state, ClaimState::kLapsing);
    EXPECT_TRUE(Serves(*host_)) << "its own claim is whole";
    EXPECT_TRUE(AsksForRestore(host_->status())) << host_->status().reason;
  }
  void EraseLeasedSlot() {
    AsOperator([&](BlockingCoordinator& registry) {
      const Slot slot{0, lease_.worker};
      const std::vector<Write> erase{Write::Erase(LivePath(slot), Write::kAnyVersion),
                                     Write::Erase(SlotPath(slot), Write::kAnyVersion)};
      ASSERT_TRUE(registry.Multi(erase).status.ok());
    });
  }

  std::unique_ptr<ClaimHost> host_;
  decltype(std::declval<MemoryTree&>().Save()) backup_;
  LeaseGrant lease_;
  WallMs kept_;
};

TEST_F(LeaseLossTest, AnOfflineStartFreezesARegistryInWhichTheBoundOfALeaseFell) {
  GrantAndKill();
  tree_.Load(backup_);
  StartUnreachable();
  ExpectLoss("promised to a lease until");
  // The ids of the restored cluster start above the lease.
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(
        RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{.bound = kept_}}}, entropy_)
            .ok());
  });
  Run(Milliseconds(100'000), *host_);
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
  EXPECT_EQ(host_->status().state, ClaimState::kHolding) << host_->status().reason;
}

TEST_F(LeaseLossTest, AnOfflineStartFreezesARegistryWithoutTheSlotOfALease) {
  GrantAndKill();
  EraseLeasedSlot();
  StartUnreachable();
  ExpectLoss("has no record");
}

TEST_F(LeaseLossTest, AnOfflineStartFreezesARegistryWhoseSlotOfALeaseWasRecreated) {
  GrantAndKill();
  const std::string record = FormatSlotRecord(RecordOf(lease_.worker));
  EraseLeasedSlot();
  AsOperator([&](BlockingCoordinator& registry) {
    const std::vector<Write> create{
        Write::Create(SlotPath({0, lease_.worker}), record, Lifetime::kPersistent)};
    ASSERT_TRUE(registry.Multi(create).status.ok());
  });
  StartUnreachable();
  ExpectLoss("was deleted and re-created");
}

// The data were rolled back, and another process has claimed the machine id and renewed.
TEST_F(LeaseLossTest, AnOfflineStartFreezesARegistryInWhichTheSlotOfALeaseWasClaimedAgain) {
  GrantAndKill();
  tree_.Load(backup_);
  SlotRecord other{.nonce = Nonce(9, 9), .word = Nonce(9, 9), .owner = "b"};
  other.since = clock_.Wall();
  other.bound = clock_.Wall() + Milliseconds(600'000);
  Write1(SlotPath({0, lease_.worker}), FormatSlotRecord(other));
  tree_.SetVersion(SlotPath({0, lease_.worker}), 1'000);
  StartUnreachable();
  ExpectLoss("was claimed below the bound");
}

// The state folder was restored from a backup. Since then, the lease was released and its machine
// id claimed. The lease may have ended without an id.
TEST_F(LeaseLossTest, AnOfflineStartAcceptsASlotThatWasReleasedSinceItsFolder) {
  for (const auto& [claimed, unused] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    MakeClusterWith(4);
    disk_ = {};
    GrantAndKill();
    const Slot slot{0, lease_.worker};
    SlotRecord record = RecordOf(slot.worker);
    const Nonce nonce = record.nonce;
    record.nonce = {};
    record.bound = unused ? record.since : clock_.Wall() + Milliseconds(1'000);
    Write1(SlotPath(slot), FormatSlotRecord(record));
    if (claimed) {
      PastHolders past;
      past.Add({"s",
                "",
                1,
                record.since,
                record.bound,
                {},
                nonce,
                tree_.Peek(SlotPath(slot))->stat.version});
      AsOperator([&](BlockingCoordinator& registry) {
        registry.Multi({Write::Create(PastPath(slot), past.Text(), Lifetime::kPersistent)});
      });
      record.nonce = record.word = Nonce(9, 9);
      record.writer.reset();
      record.since = record.bound;
      record.bound += Milliseconds(2'000);
      Write1(SlotPath(slot), FormatSlotRecord(record));
    }
    StartUnreachable();
    host_->link().Reconnect();
    Run(Milliseconds(2'000), *host_);
    EXPECT_FALSE(Meta().frozen) << Meta().reason;
    EXPECT_EQ(host_->status().state, ClaimState::kHolding) << host_->status().reason;
  }
}

// The restore did not know the lease.
TEST_F(LeaseLossTest, AnOfflineStartFreezesARestoredClusterWhoseFloorIsBelowALease) {
  GrantAndKill();
  tree_.Load(backup_);
  AsOperator([&](BlockingCoordinator& registry) {
    MetaAsRead read = *ReadMeta(registry);
    read.meta.floor = clock_.Wall() + Milliseconds(1'000);
    ASSERT_TRUE(BeginEra(registry, read.meta, read.version, entropy_).ok());
  });
  StartUnreachable();
  ExpectLoss("the floor lies below the bound of");
}

// The data are rolled back after the comparison, before the answer to the first renewal.
TEST_F(LeaseLossTest, AnOfflineStartComparesAgainUntilARenewalIsAcknowledged) {
  GrantAndKill();
  StartUnreachable();
  host_->link().Script(Verb::kMulti, {Fate::Kind::kRequestLost, {}, {}});
  host_->link().Reconnect();
  for (int i = 0; i < 200 && !host_->keeper().checked(); ++i) Run(Milliseconds(5), *host_);
  ASSERT_TRUE(host_->keeper().checked());
  host_->link().Disconnect();
  Run(Milliseconds(100), *host_);
  ASSERT_FALSE(Meta().frozen);
  tree_.Load(backup_);
  ExpectLoss("promised to a lease until");
}

TEST_F(LeaseLossTest, AnOfflineStartResumesRenewalsWhereTheRegistryHasEveryBound) {
  GrantAndKill();
  StartUnreachable();
  const WallMs before = host_->status().bound;
  host_->link().Reconnect();
  Run(Milliseconds(5'000), *host_);
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
  EXPECT_TRUE(host_->keeper().checked());
  EXPECT_GT(host_->status().bound, before);
  EXPECT_TRUE(Serves(*host_));
}

// Until the server has checked its own claim, the slot of a lost lease looks free.
TEST_F(LeaseLossTest, GrantsNoneBetweenAReconnectionAndTheNextCheck) {
  auto server = StartServer();
  Grant(*server, 1);
  server->link().Disconnect();
  Run(Milliseconds(10), *server);
  EXPECT_NE(server->Ask(2)->reply->message.find("unreachable"), std::string::npos);
  server->link().Reconnect();
  auto refused = server->Ask(2);
  for (int i = 0; i < 100 && refused->reply->message != LeaseTable::kUnchecked; ++i) {
    clock_.Advance(Milliseconds(5));
    server->link().Dispatch(Milliseconds(0));
    refused = server->Ask(2);
    ASSERT_EQ(refused->verdict(), LeaseVerdict::kLater);
  }
  EXPECT_EQ(refused->reply->message, LeaseTable::kUnchecked);
  Run(Milliseconds(10), *server);
  Grant(*server, 2);
}

// The file of bounds is unreadable, so the server cannot know whether data were lost.
TEST_F(LeaseLossTest, AStartClaimsAndResumesNothingIfItsKeptBoundsAreUnreadable) {
  GrantAndKill();
  ClaimOptions options = Options("s");
  options.kept_fault = "cannot read the bounds";
  host_ = Start(disk_, options);
  Run(Milliseconds(5'000), *host_);
  EXPECT_FALSE(host_->user().has_claim());
  EXPECT_EQ(host_->status().reason, "cannot read the bounds");
  EXPECT_FALSE(Meta().frozen);
  host_ = Start(disk_, Options("s"));
  Run(Milliseconds(20'000), *host_);
  EXPECT_TRUE(host_->user().has_claim()) << host_->status().reason;
}

}  // namespace
}  // namespace firn
