#include "registry/operate/reserve.h"

#include "common/base/cat.h"
#include "registry/cluster/reserved.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"
#include "tests/support/registry/faulty_coordinator.h"

namespace firn {
namespace {

constexpr Milliseconds kAhead{10'000};

// Four machine ids in one rack.
class ReserveTest : public ClaimKeeperTest {
 protected:
  Status Reserve(const std::vector<Slot>& slots, const std::string& what_for = "leaf") {
    Status done = Invalid("not run");
    AsOperator(
        [&](BlockingCoordinator& registry) { done = ReserveSlots(registry, slots, what_for); });
    return done;
  }

  Status Release(const std::vector<Slot>& slots) {
    Status done = Invalid("not run");
    AsOperator([&](BlockingCoordinator& registry) {
      done = ReleaseSlots(registry, slots, clock_.Wall(), kAhead);
    });
    return done;
  }

  Audit Look() {
    Audit audit;
    AsOperator([&](BlockingCoordinator& registry) {
      Result<Audit> read = ReadAudit(registry, clock_.Wall());
      ASSERT_TRUE(read.ok()) << read.status();
      audit = *read;
    });
    return audit;
  }
};

TEST_F(ReserveTest, AReservedMachineIdIsNeverClaimed) {
  ASSERT_TRUE(Reserve({{0, 0}, {0, 1}, {0, 3}}).ok());
  auto first = Start();
  Run(Milliseconds(100), *first);
  ASSERT_TRUE(Serves(*first));
  EXPECT_FALSE(RecordOf(2).nonce.zero());

  MemoryDisk disk;
  auto second = Start(disk, Options("b"));
  Run(Milliseconds(3 * 86'400'000LL / 1000), {first.get(), second.get()});
  EXPECT_FALSE(Serves(*second));
  for (const uint32_t worker : {0U, 1U, 3U}) {
    EXPECT_TRUE(IsReserved(RecordOf(worker))) << worker;
    EXPECT_TRUE(RecordOf(worker).nonce.zero()) << worker;
  }
}

TEST_F(ReserveTest, AReservedMachineIdIsNotClaimedOnRequest) {
  ASSERT_TRUE(Reserve({{0, 1}}).ok());
  ClaimOptions options = Options();
  options.worker = 1;
  auto host = Start(disk_, options);
  Run(Milliseconds(20'000), *host);
  EXPECT_FALSE(Serves(*host));
  EXPECT_NE(host->status().reason.find("reserved: leaf"), std::string::npos)
      << host->status().reason;
}

TEST_F(ReserveTest, AReleasedMachineIdIsClaimedAboveTheOtherSystemsIds) {
  ASSERT_TRUE(Reserve({{0, 0}, {0, 1}, {0, 2}, {0, 3}}).ok());
  auto host = Start();
  Run(Milliseconds(5'000), *host);
  ASSERT_FALSE(Serves(*host));
  const WallMs released = clock_.Wall();
  ASSERT_TRUE(Release({{0, 2}}).ok());
  Run(Milliseconds(40'000), *host);
  ASSERT_TRUE(Serves(*host));
  EXPECT_FALSE(RecordOf(2).nonce.zero());
  EXPECT_GE(RecordOf(2).since, released + kAhead);
  EXPECT_TRUE(Look().Faults().empty()) << Look().Faults().front();
}

TEST_F(ReserveTest, AReleasedUnclaimedMachineIdCanBeReservedAgain) {
  ASSERT_TRUE(Reserve({{0, 1}}).ok());
  ASSERT_TRUE(Release({{0, 1}}).ok());
  EXPECT_FALSE(IsReserved(RecordOf(1)));
  EXPECT_TRUE(Reserve({{0, 1}}, "vesta").ok());
  EXPECT_EQ(RecordOf(1).owner, "reserved: vesta");
  EXPECT_TRUE(Reserve({{0, 1}}, "tinyid").ok()) << "it gets the new name";
  EXPECT_EQ(RecordOf(1).owner, "reserved: tinyid");
}

TEST_F(ReserveTest, DoesNotReserveAMachineIdThatFirnHasHeld) {
  MakeClusterWith(1);
  auto host = Start();
  Run(Milliseconds(100), *host);
  const Status held = Reserve({{0, 0}});
  EXPECT_EQ(held.code(), Code::kConflict);
  EXPECT_NE(held.message().find("was claimed by a"), std::string::npos) << held;
  host.reset();
  clock_.Advance(Milliseconds(86'400'000));
  EXPECT_EQ(Reserve({{0, 0}}).code(), Code::kConflict) << "its ids were issued";
  EXPECT_FALSE(RecordOf(0).retired);
}

// Half of a default cluster, like the machine ids of a second region.
class ManyReservedTest : public ReserveTest {
 protected:
  static constexpr uint32_t kMany = 512;

  void SetUp() override {
    MakeClusterWith(kMany);
    for (uint32_t worker = 0; worker < kMany; ++worker) slots_.push_back({0, worker});
  }

  // Reserves or releases all of them, and counts the writes. `fates` are the outcomes of the first
  // writes, in order; later ones are applied.
  Status All(bool reserve, const std::vector<Fate::Kind>& fates = {}) {
    writes_ = 0;
    auto memory = std::make_unique<MemoryCoordinator>(tree_);
    FaultyCoordinator faulty(std::move(memory), clock_, [&](Verb verb) {
      if (verb != Verb::kMulti) return Fate{};
      const size_t at = static_cast<size_t>(writes_++);
      return Fate{.kind = at < fates.size() ? fates[at] : Fate::Kind::kDone};
    });
    BlockingCoordinator registry(faulty, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    return reserve ? ReserveSlots(registry, slots_, "leaf")
                   : ReleaseSlots(registry, slots_, clock_.Wall(), kAhead);
  }

  uint32_t Reserved() {
    uint32_t count = 0;
    for (uint32_t worker = 0; worker < kMany; ++worker) count += IsReserved(RecordOf(worker));
    return count;
  }

  std::vector<Slot> slots_;
  int writes_ = 0;
};

TEST_F(ManyReservedTest, ReservesManyInFewWrites) {
  ASSERT_TRUE(All(true).ok());
  EXPECT_EQ(Reserved(), kMany);
  EXPECT_LE(writes_, 8);
  ASSERT_TRUE(All(false).ok());
  EXPECT_EQ(Reserved(), 0u);
  EXPECT_LE(writes_, 9) << "one more reads the registry's time";
}

TEST_F(ManyReservedTest, ASecondRunCompletesAnInterruptedOne) {
  using enum Fate::Kind;
  for (const Fate::Kind broken : {kRefused, kRequestLost, kAnswerLost}) {
    for (const bool reserve : {true, false}) {
      SCOPED_TRACE(Cat(reserve ? "reserve" : "release", ", fate ", static_cast<int>(broken)));
      const Status told = All(reserve, {kDone, kDone, broken});
      ASSERT_FALSE(told.ok());
      EXPECT_NE(told.message().find(Cat(" of ", kMany, " are done")), std::string::npos) << told;
      EXPECT_GT(Reserved(), 0u);
      EXPECT_LT(Reserved(), kMany);
      const Status again = All(reserve);
      EXPECT_TRUE(again.ok()) << again;
      EXPECT_EQ(Reserved(), reserve ? kMany : 0);
    }
  }
}

TEST_F(ManyReservedTest, ReservesNoneIfOneIsRefused) {
  SlotRecord retired;
  retired.retired = true;
  Write1(SlotPath({0, kMany - 1}), FormatSlotRecord(retired));
  const Status refused = All(true);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.message().find(SlotText({0, kMany - 1})), std::string::npos) << refused;
  EXPECT_EQ(Reserved(), 0u);
}

TEST_F(ManyReservedTest, NamesASlotThatIsClaimedMeanwhile) {
  // Between the read and the write, simulated by a late write.
  auto memory = std::make_unique<MemoryCoordinator>(tree_);
  FaultyCoordinator faulty(std::move(memory), clock_, [&](Verb verb) {
    if (verb == Verb::kMulti && writes_++ == 0) {
      Write1(SlotPath({0, 130}), FormatSlotRecord({}));
    }
    return Fate{};
  });
  BlockingCoordinator registry(faulty, clock_);
  ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
  const Status late = ReserveSlots(registry, slots_, "leaf");
  EXPECT_EQ(late.code(), Code::kConflict);
  EXPECT_NE(late.message().find(SlotText({0, 130})), std::string::npos) << late;
  EXPECT_EQ(Reserved(), 128u);
}

TEST_F(ReserveTest, RefusesInvalidRequests) {
  EXPECT_EQ(Reserve({{0, 1}}, "").code(), Code::kInvalid);
  EXPECT_EQ(Reserve({{0, 4}}).code(), Code::kNotFound);
  EXPECT_EQ(Release({{0, 1}}).code(), Code::kConflict);
  SlotRecord retired;
  retired.retired = true;
  Write1(SlotPath({0, 1}), FormatSlotRecord(retired));
  EXPECT_EQ(Reserve({{0, 1}}).code(), Code::kConflict);
  EXPECT_EQ(Release({{0, 1}}).code(), Code::kConflict) << "a restore retired it";
  ClusterMeta meta = Meta();
  meta.frozen = true;
  meta.reason = "lost";
  Write1(kMetaPath, FormatMeta(meta));
  EXPECT_EQ(Reserve({{0, 2}}).code(), Code::kConflict);
  EXPECT_EQ(Release({{0, 2}}).code(), Code::kConflict);
}

TEST_F(ReserveTest, AReservationSurvivesARestoreAndTheAuditShowsIt) {
  ASSERT_TRUE(Reserve({{0, 1}}).ok());
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(RestoreCluster(registry, {.now = clock_.Wall()}, entropy_).ok());
  });
  EXPECT_TRUE(IsReserved(RecordOf(1)));
  const Audit audit = Look();
  EXPECT_TRUE(audit.Faults().empty()) << audit.Faults().front();
  EXPECT_EQ(SlotUseName(audit.slots[1].use), "reserved");
}

}  // namespace
}  // namespace firn
