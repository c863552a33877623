#include "registry/cluster/cluster_setup.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/operate/audit.h"
#include "registry/operate/reserve.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr uint32_t kSlots = 1024;  // of the layout firn

// A slow disk, on which each node takes some time. The outcome of a write that exceeds the time
// limit is unknown.
class Slow final : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  void Multi(std::vector<Write> writes, WriteDone done) override {
    const bool late = writes.size() > nodes_in_time || multis_left == 0;
    if (multis_left > 0) --*multis_left;
    if (!late) return ForwardingCoordinator::Multi(std::move(writes), std::move(done));
    unanswered_.push_back(std::move(done));
  }
  int Dispatch(Milliseconds wait) override {
    for (const WriteDone& done : std::exchange(unanswered_, {})) {
      done({Unknown("the registry has not answered in time"), -1, {}});
    }
    return ForwardingCoordinator::Dispatch(wait);
  }
  size_t nodes_in_time = Coordinator::kWritesMax;
  std::optional<int> multis_left{};  // until the disk fails

 private:
  std::vector<WriteDone> unanswered_;
};

class ClusterSetupTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok()); }
  Status Make() {
    return MakeCluster(
        registry_,
        {.progress = [this](uint32_t made, uint32_t of) { told_.emplace_back(made, of); }},
        entropy_);
  }
  std::vector<std::string> Faults() {
    const Result<Audit> audit = ReadAudit(registry_, clock_.Wall());
    return audit.ok() ? audit->Faults() : std::vector{audit.status().message()};
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{1};
  MemoryCoordinator session_{tree_};
  Slow disk_{session_};
  BlockingCoordinator registry_{disk_, clock_};
  std::vector<std::pair<uint32_t, uint32_t>> told_;
};

TEST_F(ClusterSetupTest, KeepsWritesSmallEnoughForABusyDisk) {
  disk_.nodes_in_time = 20;
  const Status made = Make();
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_EQ(Faults(), std::vector<std::string>());
  disk_.nodes_in_time = 70;
  std::vector<Slot> all;
  for (uint32_t slot = 0; slot < kSlots; ++slot) all.push_back({slot % 4, slot / 4});
  const Status reserved = ReserveSlots(registry_, all, "leaf");
  EXPECT_TRUE(reserved.ok()) << reserved;
}

TEST_F(ClusterSetupTest, ReportsProgress) {
  ASSERT_TRUE(Make().ok());
  ASSERT_GT(told_.size(), 10U);
  for (size_t i = 1; i < told_.size(); ++i) EXPECT_GT(told_[i].first, told_[i - 1].first);
  EXPECT_EQ(told_.back(), std::pair(kSlots, kSlots));
}

TEST_F(ClusterSetupTest, AnInterruptedCreationSaysHowToCompleteIt) {
  disk_.multis_left = 10;
  const Status cut_off = Make();
  EXPECT_EQ(cut_off.code(), Code::kUnknown);
  EXPECT_NE(cut_off.message().find(
                "of 1024 machine ids are created; repeat the command to create the others"),
            std::string::npos)
      << cut_off;
  disk_.multis_left.reset();
  const std::string remedy = "the cluster is only partly created; repeat firn init to complete it";
  EXPECT_EQ(ReserveSlots(registry_, {{0, 0}}, "leaf").message(), remedy);
  EXPECT_EQ(Faults().front(), remedy);
  const Status completed = Make();
  EXPECT_TRUE(completed.ok()) << completed;
  EXPECT_EQ(Faults(), std::vector<std::string>());
}

TEST_F(ClusterSetupTest, AClusterThatServesUndefinedTagsRecordsItsFirstDate) {
  const WallMs said(1'600'000'000'000), a_day_before = clock_.Wall() - Milliseconds(86'400'000);
  const auto since = [this](const ClusterPlan& plan) {
    MemoryTree tree(clock_);
    MemoryCoordinator session(tree);
    BlockingCoordinator registry(session, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    const Status made = MakeCluster(registry, plan, entropy_);
    EXPECT_TRUE(made.ok()) << made;
    return ReadMeta(registry)->meta.ids_since;
  };
  EXPECT_EQ(since({.workers = 1}), WallMs()) << "it serves no undefined tags";
  EXPECT_EQ(since({.workers = 1, .default_strategy = "snowflake"}), a_day_before);
  EXPECT_EQ(since({.workers = 1, .default_strategy = "snowflake", .ids_since = said}), said);
}

}  // namespace
}  // namespace firn
