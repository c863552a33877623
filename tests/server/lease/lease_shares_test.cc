#include "server/lease/lease_shares.h"

#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/operate/audit.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr WallMs kBegin{1'750'000'000'000};
constexpr uint32_t kSlots = 40;  // the upper half is for leases

class LeaseSharesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.rack_bits = 0, .workers = kSlots}, entropy_).ok());
  }

  void Put(uint32_t worker, const SlotRecord& record) {
    const auto put =
        Write::Set(SlotPath({0, worker}), FormatSlotRecord(record), Write::kAnyVersion);
    ASSERT_TRUE(registry_.Multi({put}).status.ok());
  }
  void Lease(uint32_t worker, Milliseconds ahead = kAnHour) {
    Put(worker, {.nonce = Nonce(1, worker),
                 .bound = clock_.Wall() + ahead,
                 .owner = "a/shop",
                 .lease = SlotLease{"shop", "a:1"}});
  }
  void Run(Milliseconds time) {
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(100)) {
      clock_.Advance(Milliseconds(100));
      link_.Dispatch(Milliseconds(0));
      shares_.Tick(clock_.Read());
    }
  }
  // Returns the room of the only rack.
  LeaseRoom Room() const {
    const auto rooms = shares_.rooms();
    EXPECT_EQ(rooms.size(), 1u);
    return rooms.empty() ? LeaseRoom() : rooms.front();
  }

  VirtualClock clock_{kBegin};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{5};
  FaultyCoordinator link_{std::make_unique<MemoryCoordinator>(tree_), clock_};
  LeaseShares shares_{link_, *RackSplit::Make(Layout::Firn(), 0), 0};
};

TEST_F(LeaseSharesTest, AgreesWithTheWarningOfTheAudit) {
  Put(20, {.owner = "b", .retired = true});
  Put(0, {.bound = kBegin + kADay, .owner = "b"});  // this slot is not for leases
  for (uint32_t leased = 1; leased < 20; ++leased) {
    Lease(20 + leased);
    shares_.NoteRequest({});
    Run(LeaseShares::kAfterRequest + Milliseconds(1'000));
    EXPECT_EQ(Room().usable, 19u);
    EXPECT_EQ(Room().free, 19u - leased);
    const auto faults = ReadAudit(registry_, clock_.Wall())->Faults();
    const std::string warning =
        std::to_string(Room().free) + " of 19 machine ids for leases are free";
    if (Room().free * 10 < Room().usable) {
      EXPECT_THAT(faults, Contains(HasSubstr(warning)));
    } else {
      EXPECT_TRUE(faults.empty()) << faults.front();
    }
  }
  EXPECT_EQ(Room().free, 0u);
}

TEST_F(LeaseSharesTest, CountsTheShareOfTheSettingsBesideTheRootNode) {
  Lease(39);
  const auto change = [](ClusterSettings& it) { it.lease_share = 75; };
  ASSERT_TRUE(ChangeSettings(registry_, ReadMeta(registry_)->meta.era, change).ok());
  shares_.NoteRequest({});
  Run(LeaseShares::kEvery);
  EXPECT_EQ(Room().usable, 30u);
  for (uint32_t leased = 10; leased < 39; ++leased) Lease(leased);
  const AuditFinding finding = ReadAudit(registry_, clock_.Wall())->findings.at(0);
  EXPECT_THAT(finding.what, HasSubstr("0 of 30 machine ids for leases are free"));
  EXPECT_THAT(finding.fix, HasSubstr("firn set lease_share=90"));
}

// After a restore, a bound is compared with the cluster's time, which is ahead of all clocks.
TEST_F(LeaseSharesTest, CountsByTheClustersTimeAfterARestore) {
  for (uint32_t worker = 20; worker < kSlots; ++worker) Lease(worker);
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.floor = clock_.Wall() + 2 * kAnHour;
  ASSERT_TRUE(SetMeta(registry_, root).ok());
  Lease(20, 3 * kAnHour);
  shares_.NoteRequest({});
  Run(LeaseShares::kEvery);
  EXPECT_EQ(Room().usable, 20u);
  EXPECT_EQ(Room().free, 19u);
  const auto faults = ReadAudit(registry_, clock_.Wall())->Faults();
  EXPECT_THAT(faults, Not(Contains(HasSubstr("machine ids for leases are free"))));
  clock_.Advance(kAnHour + kAnHour / 2);  // the bound is before the cluster's time
  Run(LeaseShares::kEvery);
  EXPECT_EQ(Room().free, 20u);
}

TEST_F(LeaseSharesTest, CountsAMachineIdAsFreeOnceItsBoundHasPassed) {
  Lease(30, Milliseconds(30'000));
  shares_.NoteRequest(0);
  Run(Milliseconds(15'000));
  EXPECT_EQ(Room().free, 19u);
  Run(LeaseShares::kEvery);
  EXPECT_EQ(Room().free, 20u);
}

TEST_F(LeaseSharesTest, ReadsNothingBeforeTheFirstRequest) {
  Lease(30);
  shares_.NoteRequest(1);  // there is no such rack
  int requests = 0;
  link_.SetPlan([&requests](Verb) {
    ++requests;
    return Fate{};
  });
  Run(3 * LeaseShares::kEvery);
  EXPECT_EQ(requests, 0);
  shares_.NoteRequest(0);
  Run(LeaseShares::kEvery);
  EXPECT_GT(requests, 20);  // reads the slots for leases and the cluster's settings
  EXPECT_LT(requests, 25);
}

TEST_F(LeaseSharesTest, ShowsNoRackWithoutLeases) {
  shares_.NoteRequest({});
  Run(LeaseShares::kEvery);
  EXPECT_TRUE(shares_.rooms().empty());
}

TEST_F(LeaseSharesTest, KeepsItsReadingForThreeMinutesWithoutTheRegistry) {
  Lease(30);
  shares_.NoteRequest({});
  Run(Milliseconds(15'000));
  link_.Disconnect();
  Run(LeaseShares::kKeep - Milliseconds(10'000));
  EXPECT_EQ(Room().free, 19u);
  Run(Milliseconds(10'000));
  EXPECT_TRUE(shares_.rooms().empty());
  link_.Reconnect();
  Run(LeaseShares::kEvery + Milliseconds(200));
  EXPECT_EQ(Room().free, 19u);
}

}  // namespace
}  // namespace firn
