#include "server/node/issuing_node.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/rack_split.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/cluster/tag_store.h"
#include "registry/owners/owner_records.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/state/posix_state_folder.h"
#include "tests/support/process.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

// The machine's clocks, with a wall clock that a test can set wrong.
class WrongClock final : public Clock {
 public:
  WallMs Wall() const override { return SystemClock().Wall() + Milliseconds(off_ms.load()); }
  BootMs Boot() const override { return SystemClock().Boot(); }

  std::atomic<int64_t> off_ms{0};
};

// The node of one process, with a registry in memory and the machine's own clocks.
class IssuingNodeTest : public testing::Test {
 protected:
  IssuingNodeTest() {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, SystemClock());
    EXPECT_TRUE(registry.Connect(kPatience).ok());
    EXPECT_TRUE(MakeCluster(registry, {}, entropy_).ok());
  }

  Result<std::unique_ptr<PosixStateFolder>> OpenFolder(FileWriter::Replacer replace = {}) {
    return PosixStateFolder::Open(
        {.folder = folder_.path(), .stem = "test:7609:2130706433", .grant_dir = memory_.path()},
        std::move(replace));
  }

  static IssuingNodeOptions Options() {
    IssuingNodeOptions options;
    options.claim.identity = {.owner = "test.7609.2130706433",
                              .endpoint = "127.0.0.1:7609",
                              .host = "localhost",
                              .pid = 1,
                              .build = "test"};
    return options;
  }

  std::unique_ptr<IssuingNode> Start() { return Start(Options(), *OpenFolder()); }
  std::unique_ptr<IssuingNode> Start(const IssuingNodeOptions& options,
                                     std::unique_ptr<StateFolder> folder) {
    auto node = Make(SystemClock(), options, std::move(folder));
    const Status serving = node->WaitUntilServing(kPatience);
    EXPECT_TRUE(serving.ok()) << serving;
    return node;
  }
  std::unique_ptr<IssuingNode> Make(const Clock& clock, const IssuingNodeOptions& options,
                                    std::unique_ptr<StateFolder> folder) {
    auto node = std::make_unique<IssuingNode>(
        options,
        IssuingNodeParts{.coordinator = std::make_unique<MemoryCoordinator>(tree_),
                         .folder = std::move(folder)},
        clock, entropy_);
    EXPECT_TRUE(node->Start().ok());
    return node;
  }

  static int64_t Take(IssuingNode& node) {
    IssueCall call(*node.issuer().Resolve("default"), {.tag = "default"});
    const bool issued =
        Eventually(kPatience, [&] { return node.issuer().Issue(call) == Verdict::kIssued; });
    EXPECT_TRUE(issued) << call.refusal();
    return issued ? call.runs()[0].first : 0;
  }

  void CreateTag(const TagDefinition& tag) {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    ASSERT_TRUE(TagStore(registry).Create(tag).ok());
  }

  SlotRecord RecordOf(MachineId machine) {
    const RackSplit split = RackSplit::Default(Layout::Firn());
    const Slot slot{.rack = split.RackOf(machine), .worker = split.WorkerOf(machine)};
    return *ParseSlotRecord(tree_.Peek(SlotPath(slot))->data);
  }

  SeededEntropy entropy_{3};
  TempDir folder_;
  TempDir memory_{kMemoryDir};
  MemoryTree tree_{SystemClock()};
};

TEST_F(IssuingNodeTest, IssuesUnderTheMachineIdThatItHolds) {
  const auto node = Start();
  const auto machine = node->status().claim.machine;
  ASSERT_TRUE(machine.has_value());
  EXPECT_EQ(Layout::Firn().Unpack(Take(*node))->machine, *machine);
}

TEST_F(IssuingNodeTest, DropsAWallClockThatWasWrongOnlyBeforeTheClaim) {
  WrongClock clock;
  clock.off_ms = int64_t{80} * 365 * 86'400'000;
  const auto node = Make(clock, Options(), *OpenFolder());
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return node->status().claim.reason.find("correct the clock") != std::string::npos ||
           node->status().claim.reason.find("layout's time") != std::string::npos;
  })) << node->status().claim.reason;
  clock.off_ms = 0;
  ASSERT_TRUE(node->WaitUntilServing(kPatience).ok());
  const WallMs issued = Layout::Firn().StartOf(Layout::Firn().Unpack(Take(*node))->tick);
  EXPECT_LT(issued, SystemClock().Wall() + Milliseconds(60'000));
}

TEST_F(IssuingNodeTest, IsReadyOnlyWhileTheDefaultTagCanIssue) {
  TagDefinition order;
  order.name = "order";
  order.strategy = "segment";
  order.store = "main";
  CreateTag(order);
  IssuingNodeOptions options = Options();
  options.default_tag = "order";
  const auto node = Make(SystemClock(), options, *OpenFolder());
  EXPECT_TRUE(Eventually(kPatience, [&] { return !node->status().why_not_serving.has_value(); }))
      << "the tag 'default' can issue";
  const IssuingNodeStatus status = node->status();
  ASSERT_TRUE(status.why_not_ready.has_value());
  EXPECT_NE(status.why_not_ready->find("no store 'main'"), std::string::npos)
      << *status.why_not_ready;
  EXPECT_EQ(status.refused->at("order").state, TagState::kUnsupported);
}

TEST_F(IssuingNodeTest, IsReadyWhileTheDefaultTagIsDisabled) {
  TagDefinition order;
  order.name = "order";
  order.strategy = "snowflake";
  order.disabled = true;
  CreateTag(order);
  IssuingNodeOptions options = Options();
  options.default_tag = "order";
  const auto node = Make(SystemClock(), options, *OpenFolder());
  EXPECT_TRUE(Eventually(kPatience, [&] { return !node->status().why_not_ready.has_value(); }));
  EXPECT_EQ(node->status().refused->at("order").state, TagState::kDisabled);
}

TEST_F(IssuingNodeTest, IsNotReadyWithoutADefinitionOfTheDefaultTag) {
  IssuingNodeOptions options = Options();
  options.default_tag = "orders";
  const auto node = Make(SystemClock(), options, *OpenFolder());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return !node->status().why_not_serving.has_value() &&
           node->status().why_not_ready == "the default tag 'orders' is not defined";
  })) << node->status().why_not_ready.value_or("ready");
}

// Does not answer reads of owners until it is released.
class OwnersHeld final : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    if (held && path.starts_with(kOwnersPath)) {
      held_.push_back([=, this] { ForwardingCoordinator::Read(path, done, changed); });
    } else {
      ForwardingCoordinator::Read(path, std::move(done), std::move(changed));
    }
  }
  int Dispatch(Milliseconds wait) override {
    if (!held) {
      for (const auto& read : std::exchange(held_, {})) read();
    }
    return ForwardingCoordinator::Dispatch(wait);
  }

  std::atomic<bool> held = true;

 private:
  std::vector<std::function<void()>> held_;
};

TEST_F(IssuingNodeTest, AStartIsNotReadyBeforeItHasReadTheOwnersOfTags) {
  TagDefinition order;
  order.name = "order";
  order.strategy = "segment";
  order.buffer = TagBuffer::kOwner;
  CreateTag(order);
  IssuingNodeOptions options = Options();
  options.owners = {.address = "127.0.0.1:7609"};
  MemoryCoordinator memory(tree_);
  auto coordinator = std::make_unique<OwnersHeld>(memory);
  OwnersHeld& link = *coordinator;
  IssuingNode node(options, {.coordinator = std::move(coordinator), .folder = *OpenFolder()},
                   SystemClock(), entropy_);
  ASSERT_TRUE(node.Start().ok());
  ASSERT_TRUE(node.WaitUntilServing(kPatience).ok());
  const auto why = [](const std::optional<std::string>& reason) {
    return reason.value_or("ready");
  };
  const IssuingNodeStatus starting = node.status();
  for (const auto& reason : {starting.why_not_ready, starting.why_not_serving}) {
    EXPECT_EQ(why(reason), "the owners of tags with buffer = owner have not been read yet");
  }
  link.held = false;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const IssuingNodeStatus status = node.status();
    return !status.why_not_ready && !status.why_not_serving;
  }));
  node.Stop();
}

TEST_F(IssuingNodeTest, ReleasesTheMachineIdAboveEverythingIssued) {
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

TEST_F(IssuingNodeTest, ReclaimsItsMachineIdWithLaterIds) {
  auto node = Start();
  const MachineId machine = *node->status().claim.machine;
  const int64_t before = Take(*node);
  node->Stop();
  node.reset();
  node = Start();
  EXPECT_EQ(node->status().claim.machine, machine);
  EXPECT_GT(Take(*node), before);
}

// The registry is lost just after the cluster was joined: only the previous user of the coordinator
// was notified, and there is no further notification until the registry is back.
TEST_F(IssuingNodeTest, ARegistryLostBeforeConstructionIsNotConnected) {
  auto coordinator = std::make_unique<FaultyCoordinator>(std::make_unique<MemoryCoordinator>(tree_),
                                                         SystemClock());
  FaultyCoordinator& link = *coordinator;
  BlockingCoordinator before(link, SystemClock());
  ASSERT_TRUE(before.Connect(kPatience).ok());
  ASSERT_TRUE(before.Sync("/").ok());
  ASSERT_NE(before.connected_in(), 0);
  link.Disconnect();
  ASSERT_FALSE(before.Sync("/").ok());
  ASSERT_NE(link.session(), 0) << "the session outlives the connection";
  IssuingNodeOptions options = Options();
  options.session = before.connected_in();
  const auto node = std::make_unique<IssuingNode>(
      options, IssuingNodeParts{.coordinator = std::move(coordinator), .folder = *OpenFolder()},
      SystemClock(), entropy_);
  ASSERT_TRUE(node->Start().ok());
  const bool told = Eventually(kPatience, [&] { return !node->status().claim.reason.empty(); });
  EXPECT_TRUE(told);
  EXPECT_FALSE(node->status().claim.connected) << node->status().claim.reason;
}

TEST_F(IssuingNodeTest, TheStartReportsTheSessionThatJoiningHasUsedUp) {
  auto coordinator = std::make_unique<MemoryCoordinator>(tree_);
  BlockingCoordinator before(*coordinator, SystemClock());
  ASSERT_TRUE(before.Connect(kPatience).ok());
  ASSERT_TRUE(before.Sync("/").ok());
  IssuingNodeOptions options = Options();
  options.session = before.connected_in();
  ASSERT_NE(options.session, 0);
  IssuingNode node(options, {.coordinator = std::move(coordinator), .folder = *OpenFolder()},
                   SystemClock(), entropy_);
  std::vector<int64_t> sessions;
  ASSERT_TRUE(
      node.Start({.session = [&sessions](
                                 const SessionEvent& event) { sessions.push_back(event.session); }})
          .ok());
  node.Stop();
  ASSERT_FALSE(sessions.empty());
  EXPECT_EQ(sessions.front(), options.session);
}

TEST_F(IssuingNodeTest, RefusesASecondProcessOnItsFolder) {
  const auto node = Start();
  EXPECT_EQ(OpenFolder().code(), Code::kConflict);
}

// A disk can block for minutes: a frozen file system, a network, a full queue.
TEST_F(IssuingNodeTest, ABlockedDiskOfTheStateFolderDoesNotStopIssuing) {
  struct Disk {
    std::mutex mutex{};
    std::condition_variable thawed{};
    bool frozen = true, asked = false;
  };
  const auto disk = std::make_shared<Disk>();
  IssuingNodeOptions options = Options();
  options.claim.window = Milliseconds(1'000);
  auto node = Start(options, *OpenFolder([disk](const std::string&, std::string_view) -> Status {
                      std::unique_lock lock(disk->mutex);
                      disk->asked = true;
                      disk->thawed.wait(lock, [&] { return !disk->frozen; });
                      return {};
                    }));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const std::scoped_lock lock(disk->mutex);
    return disk->asked;
  }));
  const ClaimStatus before = node->status().claim;
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const ClaimStatus now = node->status().claim;
    return now.renewals.done >= before.renewals.done + 3 && now.bound > before.bound &&
           now.limit >= before.limit + Milliseconds(1'000);
  }));
  EXPECT_GT(Take(*node), 0);
  node->Stop();
  node.reset();  // waits for the disk for at most a second
  const std::scoped_lock lock(disk->mutex);
  EXPECT_TRUE(disk->frozen);
  disk->frozen = false;
  disk->thawed.notify_all();
}

}  // namespace
}  // namespace firn
