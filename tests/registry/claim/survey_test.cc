#include "registry/claim/survey.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "registry/claim/claim_options.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kAsked{1'750'000'000'000};

SlotRecord Used(WallMs bound, Nonce nonce = Nonce(1, 1)) {
  SlotRecord record;
  record.nonce = nonce;
  record.bound = bound;
  record.owner = "them";
  return record;
}

TEST(SlotStateTest, DependsOnBoundNonceAndRetirement) {
  SlotQuery query;
  query.now = kAsked;
  query.released_ahead = Milliseconds(1'000);
  EXPECT_EQ(StateOfSlot({}, query), SlotState::kNeverUsed);
  EXPECT_EQ(StateOfSlot(Used(kAsked), query), SlotState::kPassed);
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(1)), query), SlotState::kAhead);
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(1'000), Nonce()), query), SlotState::kPassed);
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(1'001), Nonce()), query), SlotState::kAhead);
  EXPECT_EQ(StateOfSlot(Used(kAsked + kPoisonAhead), query), SlotState::kAhead);
  EXPECT_EQ(StateOfSlot(Used(kAsked + kPoisonAhead + Milliseconds(1)), query), SlotState::kPoison);
  SlotRecord retired;
  retired.retired = true;
  EXPECT_EQ(StateOfSlot(retired, query), SlotState::kRetired);
}

TEST(SlotStateTest, ComparesTheOwnSlotWithTheOwnIdClock) {
  SlotQuery query;
  query.owner = "us";
  query.now = kAsked;
  query.id_time = kAsked + Milliseconds(5'000);
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(5'000)), query), SlotState::kAhead);
  query.owner = "them";
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(5'000)), query), SlotState::kPassed);
  EXPECT_EQ(StateOfSlot(Used(kAsked + Milliseconds(5'001)), query), SlotState::kAhead);
}

class SurveyTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.rack_bits = 0, .workers = 100}, entropy_).ok());
    query_.workers = 1'024;
    query_.owner = "us";
    query_.now = kAsked;
  }

  void Put(uint32_t worker, const SlotRecord& record, bool live = false) {
    const std::string path = SlotPath({0, worker});
    ASSERT_TRUE(registry_.Multi({Write::Set(path, FormatSlotRecord(record), Write::kAnyVersion)})
                    .status.ok());
    if (!live) return;
    ASSERT_TRUE(registry_
                    .Multi({Write::Create(path + "/live", FormatLiveMark({"h", record.nonce}),
                                          Lifetime::kEphemeral)})
                    .status.ok());
  }
  void PutAll(WallMs bound, bool live = false) {
    for (uint32_t worker = 0; worker < 100; ++worker) Put(worker, Used(bound), live);
  }

  const Surveyed& Run() {
    AsyncRegistry async_registry(coordinator_);
    Task<Surveyed> task = SurveySlots(&async_registry, &entropy_, query_);
    async_registry.Start(task);
    for (int i = 0; i < 100 && task.busy(); ++i) {
      coordinator_.Dispatch(Milliseconds(0));
      async_registry.Tick(clock_.Boot());
    }
    surveyed_ = task.Take();
    return surveyed_;
  }

  VirtualClock clock_{kAsked};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{5};
  SlotQuery query_;
  Surveyed surveyed_;
};

TEST_F(SurveyTest, UnusedSlotsComeInRandomOrder) {
  std::set<uint32_t> first;
  for (int i = 0; i < 20; ++i) first.insert(Run().candidates.at(0).slot.worker);
  EXPECT_GT(first.size(), 10u);
}

TEST_F(SurveyTest, TheHintedSlotComesFirst) {
  query_.hinted = Slot{0, 42};
  EXPECT_EQ(Run().candidates.at(0).slot.worker, 42u);
  Put(42, Used(kAsked + Milliseconds(1)));
  EXPECT_NE(Run().candidates.at(0).slot.worker, 42u);
}

TEST_F(SurveyTest, UsedSlotsComeInRandomOrderFromTheOlderHalf) {
  for (uint32_t worker = 0; worker < 100; ++worker) {
    Put(worker, Used(kAsked - Milliseconds(100 - worker)));
  }
  std::set<uint32_t> first;
  for (int i = 0; i < 20; ++i) {
    for (const SurveyedSlot& found : Run().candidates) {
      EXPECT_LT(found.slot.worker, 50u);
    }
    first.insert(surveyed_.candidates.at(0).slot.worker);
  }
  EXPECT_GT(first.size(), 10u);
}

TEST_F(SurveyTest, SkipsALiveSlotForAMinuteAfterItsBound) {
  PutAll(kAsked - kLiveGrace + Milliseconds(1), true);
  EXPECT_TRUE(Run().candidates.empty());
  EXPECT_NE(Run().reason.find("100 are live past their bound"), std::string::npos) << Run().reason;
  query_.now = kAsked + Milliseconds(1);
  EXPECT_FALSE(Run().candidates.empty());
}

TEST_F(SurveyTest, CountsRetiredSlotsInTheReasonIfNoneIsFree) {
  PutAll(kAsked + Milliseconds(1));
  SlotRecord reserved = Used(kAsked);
  reserved.retired = true;
  for (uint32_t worker = 0; worker < 30; ++worker) Put(worker, reserved);
  EXPECT_TRUE(Run().candidates.empty());
  EXPECT_NE(Run().reason.find("30 are reserved or retired"), std::string::npos) << Run().reason;
}

TEST_F(SurveyTest, IgnoresTheLiveNodeOfItsOwnDeadSession) {
  PutAll(kAsked - Milliseconds(1), true);
  query_.owner = "them";
  EXPECT_FALSE(Run().candidates.empty());
}

TEST_F(SurveyTest, ReturnsTheEarliestBoundIfAllSlotsAreInUse) {
  PutAll(kAsked + Milliseconds(500));
  Put(3, Used(kAsked + Milliseconds(400)));
  EXPECT_TRUE(Run().candidates.empty());
  EXPECT_EQ(Run().earliest, kAsked + Milliseconds(400));
  EXPECT_NE(Run().reason.find("100 have a bound ahead"), std::string::npos);
}

TEST_F(SurveyTest, SkipsAnUnguardedSlotWithAnAlarm) {
  tree_.SetVersion(SlotPath({0, 7}), -1);
  query_.hinted = Slot{0, 7};
  const Surveyed& survey = Run();
  ASSERT_FALSE(survey.candidates.empty());
  for (const SurveyedSlot& found : survey.candidates) EXPECT_NE(found.slot.worker, 7u);
  query_.hinted.reset();
  query_.worker = 7;
  Run();
  EXPECT_TRUE(surveyed_.candidates.empty());
  ASSERT_EQ(surveyed_.alarms.size(), 1u);
  EXPECT_NE(surveyed_.alarms[0].find("firn restore"), std::string::npos);
}

TEST_F(SurveyTest, AServerTakesSlotsForLeasesOnlyIfTheOthersAreInUse) {
  query_.lease_share = 25;  // workers 75 to 99
  for (int i = 0; i < 20; ++i) {
    for (const SurveyedSlot& found : Run().candidates) EXPECT_LT(found.slot.worker, 75u);
  }
  // A server prefers a used slot outside the leases' share to an unused slot in it.
  for (uint32_t worker = 0; worker < 75; ++worker) Put(worker, Used(kAsked - Milliseconds(1)));
  for (const SurveyedSlot& found : Run().candidates) EXPECT_LT(found.slot.worker, 75u);
  for (uint32_t worker = 0; worker < 75; ++worker) Put(worker, Used(kAsked + Milliseconds(1)));
  ASSERT_FALSE(Run().candidates.empty());
  for (const SurveyedSlot& found : surveyed_.candidates) EXPECT_GE(found.slot.worker, 75u);
}

TEST_F(SurveyTest, ALeaseTakesOnlySlotsForLeasesAndUsedOnesFirst) {
  query_.lease_share = 25;
  query_.for_lease = true;
  ASSERT_FALSE(Run().candidates.empty());
  for (const SurveyedSlot& found : surveyed_.candidates) EXPECT_GE(found.slot.worker, 75u);
  Put(80, Used(kAsked - Milliseconds(1)));
  ASSERT_EQ(Run().candidates.size(), 1u);
  EXPECT_EQ(surveyed_.candidates[0].slot.worker, 80u);
  for (uint32_t worker = 75; worker < 100; ++worker) Put(worker, Used(kAsked + Milliseconds(1)));
  EXPECT_TRUE(Run().candidates.empty());
  EXPECT_NE(Run().reason.find("of 25 slots for leases of rack 0, 25 have a bound ahead"),
            std::string::npos)
      << Run().reason;
  query_.lease_share = 0;
  EXPECT_EQ(Run().reason, "rack 0 has no slots for leases");
}

TEST_F(SurveyTest, ALeaseTakesAReleasedSlotOnlyAfterItsBound) {
  query_.lease_share = 100;
  query_.for_lease = true;
  PutAll(kAsked + Milliseconds(1));
  Put(50, Used(kAsked + Milliseconds(1), Nonce()));
  EXPECT_TRUE(Run().candidates.empty());
  Put(50, Used(kAsked, Nonce()));
  ASSERT_EQ(Run().candidates.size(), 1u);
}

TEST_F(SurveyTest, ARequestedWorkerIsTheOnlyCandidate) {
  query_.worker = 9;
  EXPECT_EQ(Run().candidates.size(), 1u);
  EXPECT_EQ(Run().candidates.at(0).slot.worker, 9u);
  Put(9, Used(kAsked + Milliseconds(1)));
  EXPECT_TRUE(Run().candidates.empty());
}

// The explanation contains the holder and its bound, or a remedy.
TEST_F(SurveyTest, ExplainsWhyARequestedWorkerIsNotFree) {
  SlotRecord held = Used(kAsked + Milliseconds(1));
  held.host = "far";
  held.pid = 4711;
  SlotRecord released = held, poison = held, retired;
  released.nonce = Nonce();
  poison.bound = kAsked + 2 * kPoisonAhead;
  retired.retired = true;
  query_.worker = 9;
  const std::pair<SlotRecord, const char*> rows[] = {
      {held, "(rack 0 worker 9) is held by them (far, process 4711) until 2025-06-15T15:06:40.001"},
      {released, "was released by them (far, process 4711) and is free at 2025-06-15T15:06:40.001"},
      {poison, "more than a day ahead"},
      {retired, "permanently retired"}};
  for (const auto& [record, words] : rows) {
    Put(9, record);
    EXPECT_NE(Run().reason.find(words), std::string::npos) << Run().reason;
  }
  Put(9, Used(kAsked - Milliseconds(1)), true);
  EXPECT_NE(Run().reason.find("still live under them"), std::string::npos) << Run().reason;
  query_.worker = 100;
  EXPECT_NE(Run().reason.find("firn restore --set=workers=101"), std::string::npos) << Run().reason;
}

}  // namespace
}  // namespace firn
