#include "server/issuing_node.h"

#include <memory>

#include <gtest/gtest.h>

#include "common/rack_split.h"
#include "registry/blocking_coordinator.h"
#include "registry/claim/posix_state_folder.h"
#include "registry/cluster_setup.h"
#include "registry/memory_coordinator.h"
#include "registry/records.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr Milliseconds kPatience{30'000};

// One process's node on a registry in memory, on the machine's own clocks.
class IssuingNodeTest : public testing::Test {
 protected:
  IssuingNodeTest() {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, SystemClock());
    EXPECT_TRUE(registry.Connect(kPatience).ok());
    EXPECT_TRUE(MakeCluster(registry, {}, entropy_).ok());
  }

  std::unique_ptr<IssuingNode> Start() {
    IssuingNodeOptions options;
    options.claim.identity = {.owner = "test.7609.2130706433",
                              .endpoint = "127.0.0.1:7609",
                              .host = "localhost",
                              .pid = 1,
                              .build = "test"};
    auto folder = PosixStateFolder::Open(folder_.path(), "test:7609:2130706433");
    EXPECT_TRUE(folder.ok()) << folder.status();
    auto node = std::make_unique<IssuingNode>(options, SystemClock(), entropy_,
                                              std::make_unique<MemoryCoordinator>(tree_),
                                              *std::move(folder));
    EXPECT_TRUE(node->Start().ok());
    const Status serving = node->WaitUntilServing(kPatience);
    EXPECT_TRUE(serving.ok()) << serving;
    return node;
  }

  static int64_t Take(IssuingNode& node) {
    IssueCall call(*node.issuer().Resolve("default"), {.tag = "default"});
    const bool issued =
        Eventually(kPatience, [&] { return node.issuer().Issue(call) == Verdict::kIssued; });
    EXPECT_TRUE(issued) << call.refusal();
    return issued ? call.runs()[0].first : 0;
  }

  SlotRecord RecordOf(MachineId machine) {
    const RackSplit split = RackSplit::Default(Layout::Firn());
    const Slot slot{.rack = split.RackOf(machine), .worker = split.WorkerOf(machine)};
    return *ParseSlotRecord(tree_.Peek(SlotPath(slot))->data);
  }

  SeededEntropy entropy_{3};
  TempDir folder_;
  MemoryTree tree_{SystemClock()};
};

TEST_F(IssuingNodeTest, IssuesUnderTheMachineIdThatItHolds) {
  const auto node = Start();
  const auto machine = node->status().claim.machine;
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(Layout::Firn().Unpack(Take(*node))->machine, *machine);
}

TEST_F(IssuingNodeTest, GivesTheMachineIdBackAboveEverythingIssued) {
  const auto node = Start();
  const MachineId machine = *node->status().claim.machine;
  const int64_t id = Take(*node);
  node->Stop();
  const SlotRecord record = RecordOf(machine);
  EXPECT_TRUE(record.nonce.zero());
  EXPECT_GT(record.bound, Layout::Firn().StartOf(Layout::Firn().Unpack(id)->tick));
  int64_t late = 0;
  EXPECT_FALSE(node->issuer().TryOne(*node->issuer().Resolve("default"), Method::kEmbedded, &late));
}

TEST_F(IssuingNodeTest, ComesBackToItsMachineIdWithLaterIds) {
  auto node = Start();
  const MachineId machine = *node->status().claim.machine;
  const int64_t before = Take(*node);
  node->Stop();
  node.reset();
  node = Start();
  EXPECT_EQ(node->status().claim.machine, machine);
  EXPECT_GT(Take(*node), before);
}

TEST_F(IssuingNodeTest, ASecondProcessOnItsFolderIsRefused) {
  const auto node = Start();
  EXPECT_EQ(PosixStateFolder::Open(folder_.path(), "test:7609:2130706433").status().code(),
            Code::kConflict);
}

}  // namespace
}  // namespace firn
