#include "tests/server/lease/lease_rig.h"

// Tests leases across a restart of their server (rule 12 of registry/claim/WHY-LEASES-HOLD.md).

namespace firn {
namespace {

class LeaseResumeTest : public LeaseTest {
 protected:
  // Creates a process that has not run yet.
  std::unique_ptr<LeaseServer> NewProcess(const std::string& boot = "boot",
                                          const std::string& name = "s") {
    LeaseTableOptions options = LeasesOf(name);
    options.boot = boot;
    auto server = StartServer(std::move(options));
    server->server.uuid = Meta().uuid;
    return server;
  }
  std::unique_ptr<LeaseServer> StartOn(const std::string& boot, const std::string& name = "s") {
    auto server = NewProcess(boot, name);
    Run(Milliseconds(100), *server);
    return server;
  }
  std::unique_ptr<LeaseServer> StartAgain() { return StartOn("boot"); }

  // Grants a lease whose bound is a window ahead, and renews it with turn 1.
  LeaseGrant GrantLong(LeaseServer& server) {
    const LeaseGrant lease = Grant(server, 1);
    Run(Milliseconds(10'000), server);
    const LeaseGrant renewed = Renewed(server, lease.lease, 1, 0);
    EXPECT_GT(RecordOf(lease.worker).bound, clock_.Wall() + Milliseconds(500'000));
    return renewed;
  }
  void StopCleanly(std::unique_ptr<LeaseServer>& server) {
    server->table().Stop(clock_.Boot() + Milliseconds(3'000));
    for (int i = 0; i < 100 && !server->table().stopped(); ++i) Run(Milliseconds(5), *server);
    EXPECT_TRUE(server->table().stopped());
    server.reset();
  }
  LeaseVerdict VerdictOf(LeaseServer& server, const std::string& lease, uint64_t turn,
                         uint64_t acknowledged) {
    const auto replied = server.Renew(lease, turn, acknowledged);
    Run(Milliseconds(50), server);
    return replied->verdict();
  }
  void Freeze() {
    ClusterMeta meta = Meta();
    meta.frozen = true;
    Write1(kMetaPath, FormatMeta(meta));
  }
  // A restarted server cannot claim a machine id while the cluster is frozen or the rack is full.
  std::unique_ptr<LeaseServer> StartWithoutClaim() {
    auto server = NewProcess();
    server->server.why_not = "no machine id";
    Run(Milliseconds(100), *server);
    return server;
  }
  size_t LeasedSlots() {
    size_t count = 0;
    for (uint32_t worker = 0; worker < 8; ++worker) count += RecordOf(worker).lease ? 1u : 0u;
    return count;
  }
};

TEST_F(LeaseResumeTest, ARestartAfterACrashExtendsTheLease) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  Renewed(*server, lease.lease, 2, 1);
  server.reset();
  Run(Milliseconds(5'000), *(server = StartAgain()));
  const LeaseGrant renewed = Renewed(*server, lease.lease, 3, 2);
  EXPECT_EQ(renewed.machine, lease.machine);
  EXPECT_EQ(renewed.from, lease.from);
  EXPECT_EQ(renewed.number, lease.number);
  EXPECT_FALSE(renewed.ending);
  EXPECT_GE(StartOf(renewed.until), clock_.Wall() + Milliseconds(50'000));
  EXPECT_LT(StartOf(renewed.until), clock_.Wall() + Milliseconds(61'000)) << "as requested";
  EXPECT_EQ(LeasedSlots(), 1u);
  // From now on, copies are detected again.
  EXPECT_EQ(VerdictOf(*server, lease.lease, 5, 2), LeaseVerdict::kRevoked);
}

TEST_F(LeaseResumeTest, ACleanStopLowersTheBoundAndTheNextProcessExtendsTheLease) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  StopCleanly(server);
  EXPECT_EQ(RecordOf(lease.worker).bound, StartOf(lease.until));
  EXPECT_FALSE(RecordOf(lease.worker).nonce.zero());
  Run(Milliseconds(20'000), *(server = StartAgain()));
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
  EXPECT_EQ(Renewed(*server, lease.lease, 1, 0).until, lease.until) << "the turn is repeated";
  const LeaseGrant renewed = Renewed(*server, lease.lease, 2, 1);
  EXPECT_EQ(renewed.machine, lease.machine);
  EXPECT_GT(renewed.until, lease.until);
  EXPECT_GT(RecordOf(lease.worker).bound, clock_.Wall() + Milliseconds(500'000));
  // A crash after a clean stop: the turn in the file is no longer the last one.
  server.reset();
  server = StartAgain();
  EXPECT_GT(Renewed(*server, lease.lease, 3, 2).until, renewed.until);
}

TEST_F(LeaseResumeTest, ACleanStopLetsTheNextProcessRecogniseACopy) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  StopCleanly(server);
  server = StartAgain();
  EXPECT_EQ(VerdictOf(*server, lease.lease, 9, 0), LeaseVerdict::kRevoked);
}

TEST_F(LeaseResumeTest, AStopRefusesRenewalsAndFreesLeasesThatHaveEnded) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  const auto ended = Grant(*server, 2);
  EXPECT_EQ(server->End(ended.lease, 0)->verdict(), LeaseVerdict::kEnded);
  server->table().Stop(clock_.Boot() + Milliseconds(3'000));
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kLater);
  EXPECT_EQ(server->Ask(3)->verdict(), LeaseVerdict::kLater);
  EXPECT_TRUE(server->table().stopped());
  server.reset();
  EXPECT_EQ(RecordOf(ended.worker).bound, StartOf(ended.until));
  // The machine id is free once the interval has passed.
  LeaseTableOptions options = LeasesOf("other");
  auto other = StartServer(options);
  other->Step();
  Run(Milliseconds(70'000), *other);
  const uint32_t worker = Grant(*other, 4).worker;
  EXPECT_TRUE(worker == lease.worker || worker == ended.worker) << "a used slot is preferred";
}

// The lower bound must be on the disk before it is in the registry. Otherwise the next start would
// conclude that the registry has lost data.
TEST_F(LeaseResumeTest, AStopWithAStalledDiskLowersNothing) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  const WallMs bound = RecordOf(lease.worker).bound;
  lease_disk_.stalled = true;
  server->table().Stop(clock_.Boot() + Milliseconds(3'000));
  Run(Milliseconds(3'500), *server);
  EXPECT_FALSE(server->table().stopped());
  EXPECT_GE(RecordOf(lease.worker).bound, bound);
  server.reset();
  lease_disk_.stalled = false;
  server = StartAgain();
  EXPECT_GT(Renewed(*server, lease.lease, 2, 1).until, lease.until);
}

TEST_F(LeaseResumeTest, AStopDoesNotWaitForALeaseThatIsResumedMeanwhile) {
  auto server = StartAgain();
  LeaseGrant lease = GrantLong(*server);
  uint64_t turn = 1;
  for (const bool cleanly : {false, true}) {
    cleanly ? StopCleanly(server) : server.reset();
    server = NewProcess();
    server->link().Script(Verb::kMulti, {Fate::Kind::kDone, {}, Milliseconds(50)});
    Run(Milliseconds(30), *server);
    ASSERT_TRUE(server->table().List().empty()) << "the write is not answered yet";
    server->table().Stop(clock_.Boot() + Milliseconds(3'000));
    Run(Milliseconds(100), *server);
    EXPECT_EQ(server->table().List().size(), 1u);
    EXPECT_TRUE(server->table().stopped());
    server.reset();
    server = StartAgain();
    lease = Renewed(*server, lease.lease, turn + 1, turn);
    ++turn;
    EXPECT_FALSE(lease.ending);
  }
}

// The state folder still contains the bound of an earlier lease of the slot.
TEST_F(LeaseResumeTest, AStopDoesNotWaitForALeaseThatIsGrantedMeanwhile) {
  auto server = StartAgain();
  const LeaseGrant ended = Grant(*server, 1);
  EXPECT_EQ(server->End(ended.lease, 0)->verdict(), LeaseVerdict::kEnded);
  Run(Milliseconds(16'000), *server);
  ASSERT_TRUE(RecordOf(ended.worker).nonce.zero());
  server->link().SetPlan([](Verb) { return Fate{Fate::Kind::kDone, {}, Milliseconds(50)}; });
  const auto asked = server->Ask(2);
  while (RecordOf(ended.worker).nonce.zero()) Run(Milliseconds(5), *server);
  ASSERT_TRUE(server->table().List().empty()) << "the write is not answered yet";
  server->table().Stop(clock_.Boot() + Milliseconds(3'000));
  EXPECT_EQ(asked->verdict(), LeaseVerdict::kLater);
  Run(Milliseconds(500), *server);
  EXPECT_EQ(server->table().List().size(), 1u);
  EXPECT_TRUE(server->table().stopped());
}

// A resumed lease lasts longer than the program's interval, because it lasts until the stored
// bound. That bound is lower than the claim's, because it was written before the last renewals of
// the claim.
TEST_F(LeaseResumeTest, RefusesARenewalWhoseIntervalEndedBeforeItWasOnTheDisk) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  Run(Milliseconds(40'000), *server);
  server.reset();
  server = StartAgain();
  lease_disk_.stalled = true;
  const auto renew = [&] { return server->Renew(lease.lease, 2, 1, Milliseconds(5'000)); };
  const auto late = renew();
  Run(Milliseconds(70'000), *server);
  const auto repeated = renew();
  lease_disk_.stalled = false;
  Run(Milliseconds(50), *server);
  EXPECT_EQ(late->verdict(), LeaseVerdict::kLater);
  EXPECT_GT(StartOf(repeated->terms().until), clock_.Wall());
  EXPECT_EQ(server->table().counts().renewed, 1u);
}

TEST_F(LeaseResumeTest, ResumesNothingAfterAnotherBootOrUnderAnotherAddress) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  server.reset();
  server = StartOn("later boot");
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kUnknown);
  server.reset();
  server = StartOn("boot", "t");
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kElsewhere);
}

TEST_F(LeaseResumeTest, ResumesNoLeaseWhoseSlotAnotherServerHasClaimed) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  StopCleanly(server);
  auto other = StartServer(LeasesOf("other"));
  other->Step();
  Run(Milliseconds(70'000), *other);
  EXPECT_EQ(Grant(*other, 4).worker, lease.worker);
  server = StartAgain();
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kUnknown);
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

TEST_F(LeaseResumeTest, ACopyOfTheRunningMachineLeavesItsLeasesToTheOriginal) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  const LeaseGrant ended = Grant(*server, 2);
  EXPECT_EQ(server->End(ended.lease, 0)->verdict(), LeaseVerdict::kEnded);
  const auto under_way = server->Ask(3);
  const SlotRecord record = RecordOf(lease.worker), record_of_ended = RecordOf(ended.worker);
  ++server->server.copies;
  Run(Milliseconds(200), *server);
  EXPECT_EQ(under_way->verdict(), LeaseVerdict::kLater);
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kRevoked);
  const LeaseGrant another = Grant(*server, 4);
  EXPECT_NE(another.worker, lease.worker);
  Run(Milliseconds(70'000), *server);
  EXPECT_EQ(RecordOf(lease.worker), record) << "neither renewed nor released";
  EXPECT_EQ(RecordOf(ended.worker), record_of_ended);
  server.reset();
  server = StartOn("boot.2");
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kUnknown);
  EXPECT_EQ(VerdictOf(*server, another.lease, 2, 1), LeaseVerdict::kUnknown);
  EXPECT_FALSE(Meta().frozen) << Meta().reason;
}

TEST_F(LeaseResumeTest, ARestartWhileTheClusterIsFrozenExtendsTheLeaseUpToItsBound) {
  for (const bool cleanly : {false, true}) {
    MakeClusterWith(8);
    lease_disk_ = {};
    auto server = StartAgain();
    LeaseGrant lease = GrantLong(*server);
    const SlotRecord record = RecordOf(lease.worker);
    Freeze();
    Run(Milliseconds(35'000), *server);  // it detects the change
    lease = Renewed(*server, lease.lease, 2, 1);
    EXPECT_TRUE(lease.ending);
    cleanly ? StopCleanly(server) : server.reset();
    // Longer than the program's interval.
    clock_.Advance(Milliseconds(90'000));
    server = StartWithoutClaim();
    for (uint64_t turn = 3; turn < 6; ++turn) {
      const LeaseGrant renewed = Renewed(*server, lease.lease, turn, turn - 1);
      EXPECT_TRUE(renewed.ending);
      EXPECT_EQ(renewed.machine, lease.machine);
      EXPECT_GT(StartOf(renewed.until), clock_.Wall());
      EXPECT_LE(StartOf(renewed.until), record.bound);
      Run(Milliseconds(20'000), *server);
    }
    EXPECT_EQ(RecordOf(lease.worker), record) << "a frozen cluster is not written";
    EXPECT_EQ(server->table().highest_bound(), record.bound);
    EXPECT_EQ(server->Ask(3)->verdict(), LeaseVerdict::kLater);
    Run(record.bound - clock_.Wall(), *server);
    EXPECT_EQ(VerdictOf(*server, lease.lease, 6, 5), LeaseVerdict::kUnknown);
  }
}

TEST_F(LeaseResumeTest, ResumesALeaseWithoutAMachineIdOfItsOwn) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  server.reset();
  server = StartWithoutClaim();
  const LeaseGrant renewed = Renewed(*server, lease.lease, 2, 1);
  EXPECT_GT(renewed.until, lease.until);
  EXPECT_FALSE(renewed.ending);
  EXPECT_EQ(server->Ask(3)->verdict(), LeaseVerdict::kLater);
}

TEST_F(LeaseResumeTest, ResumesNothingWithAnUncheckedClock) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  server.reset();
  server = NewProcess();
  ClaimStatus own;
  own.uuid = Meta().uuid;
  server->server = LeaseTable::ServerOf(own, false);
  Run(Milliseconds(1'000), *server);
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kLater);
}

// The lost data may have contained another server's claim.
TEST_F(LeaseResumeTest, ResumesNothingAfterALossOfDataWhileTheClusterIsFrozen) {
  auto server = StartAgain();
  const auto before = tree_.Save();
  const LeaseGrant lease = GrantLong(*server);
  server.reset();
  tree_.Load(before);
  Freeze();
  server = StartWithoutClaim();
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kUnknown);
}

// The stop lowered the bound. Another server may have claimed the slot from the lower bound on, and
// the registry has lost both writes.
TEST_F(LeaseResumeTest, ExtendsNoLeaseAboveTheBoundThatAStopStored) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  const auto before = tree_.Save();
  StopCleanly(server);
  const WallMs stored = RecordOf(lease.worker).bound;
  tree_.Load(before);
  ASSERT_GT(RecordOf(lease.worker).bound, stored);
  uint64_t turn = 1;
  for (const bool frozen : {false, true}) {
    if (frozen) Freeze();
    server = StartWithoutClaim();
    for (const bool checked : {false, true}) {
      if (checked) Run(Milliseconds(frozen ? 3'000 : 32'000), *server);
      const LeaseGrant renewed = Renewed(*server, lease.lease, turn + 1, turn);
      ++turn;
      EXPECT_EQ(StartOf(renewed.until), stored);
      EXPECT_TRUE(renewed.ending);
    }
    server.reset();
  }
}

// The server extends a lease only after it has read in the registry that it still holds the slot.
TEST_F(LeaseResumeTest, ExtendsNothingBeforeTheRegistryHasShownTheSlot) {
  auto server = StartAgain();
  const LeaseGrant lease = GrantLong(*server);
  server.reset();
  server = NewProcess();
  server->link().Disconnect();
  Run(Milliseconds(1'000), *server);
  EXPECT_EQ(VerdictOf(*server, lease.lease, 2, 1), LeaseVerdict::kLater);
  server->link().Reconnect();
  Run(Milliseconds(1'000), *server);
  EXPECT_GT(Renewed(*server, lease.lease, 2, 1).until, lease.until);
}

// A write of the dead process arrives between the new process's read and its takeover.
TEST_F(LeaseResumeTest, ResumesOverALateRenewalOrStopOfTheDeadProcess) {
  for (const bool stops : {false, true}) {
    MakeClusterWith(8);
    lease_disk_ = {};
    auto server = StartAgain();
    const LeaseGrant lease = GrantLong(*server);
    server.reset();
    const WallMs promised = StartOf(lease.until);
    KeptBounds kept = *ParseKeptBounds(lease_disk_.text);
    if (stops) kept.bounds.at(0).bound = promised;  // on the disk first
    lease_disk_.text = FormatKeptBounds(kept);
    server = NewProcess();
    for (int i = 0; i < 20; ++i) {
      if (i == 1) {
        SlotRecord record = RecordOf(lease.worker);
        record.word = Nonce(9, 9);
        record.bound = stops ? promised : record.bound + Milliseconds(1'000);
        Write1(SlotPath({0, lease.worker}), FormatSlotRecord(record));
      }
      clock_.Advance(Milliseconds(5));
      server->Step();
    }
    Run(Milliseconds(10'000), *server);
    EXPECT_EQ(Renewed(*server, lease.lease, 2, 1).machine, lease.machine) << stops;
    EXPECT_TRUE(server->alarms().empty()) << server->alarms().front();
  }
}

}  // namespace
}  // namespace firn
