#include "server/segment_tags.h"

#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/absent_coordinator.h"
#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/memory_coordinator.h"
#include "registry/posix_state_folder.h"
#include "registry/slot.h"
#include "registry/tag_store.h"
#include "server/issue/patient_caller.h"
#include "server/issuing_node.h"
#include "server/store/memory_store.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr Milliseconds kPatience{30'000};

// Nodes of one cluster on a registry in memory, on the machine's own clocks, and its operator.
class SegmentTagsTest : public testing::Test {
 protected:
  SegmentTagsTest() {
    EXPECT_TRUE(operator_.Connect(kPatience).ok());
    EXPECT_TRUE(MakeCluster(operator_, {}, entropy_).ok());
  }

  std::unique_ptr<IssuingNode> Make(int port = 7609, std::optional<uint32_t> worker = {}) {
    const std::string name = "test:" + std::to_string(port) + ":2130706433";
    IssuingNodeOptions options;
    options.claim.worker = worker;
    options.claim.identity = {.owner = "test." + std::to_string(port) + ".2130706433",
                              .endpoint = "127.0.0.1:" + std::to_string(port),
                              .host = "localhost",
                              .pid = 1,
                              .build = "test"};
    auto folder = PosixStateFolder::Open(folder_.path(), name);
    EXPECT_TRUE(folder.ok()) << folder.status();
    return std::make_unique<IssuingNode>(options, SystemClock(), SystemEntropy(),
                                         std::make_unique<MemoryCoordinator>(tree_),
                                         *std::move(folder));
  }
  std::unique_ptr<IssuingNode> Start(int port = 7609) {
    auto node = Make(port);
    EXPECT_TRUE(node->Start().ok());
    EXPECT_TRUE(node->WaitUntilServing(kPatience).ok());
    return node;
  }

  void Create(TagDefinition tag) {
    tag.strategy = "segment";
    const Status made = store_.Create(tag);
    EXPECT_TRUE(made.ok()) << made;
  }
  void Edit(const std::string& name, const std::function<void(TagDefinition&)>& edit) {
    Status done = Conflict("not tried");
    while (done.code() == Code::kConflict) {
      const StoredTag read = *store_.Read(name);
      TagDefinition after = read.tag();
      edit(after);
      done = store_.Replace(read, after);
    }
    EXPECT_TRUE(done.ok()) << done;
  }
  int64_t High(const std::string& name) { return store_.Read(name)->tag().high; }

  // The next number of a tag that may not be known yet; -1 and why.
  static int64_t Take(IssuingNode& node, const std::string& name = "order") {
    PatientCaller caller(node.issuer(), SystemClock(), kPatience);
    const Tag* tag = nullptr;
    if (!Eventually(kPatience, [&] { return (tag = node.issuer().Resolve(name)) != nullptr; })) {
      ADD_FAILURE() << "tag " << name << " never came";
      return -1;
    }
    IssueCall call;
    int64_t id = -1;
    if (!caller.IssueOne(call, *tag, {.tag = name}, &id)) refused_ = call.refusal();
    return id;
  }
  static bool Refuses(IssuingNode& node, Reason reason, const std::string& name = "order") {
    return Eventually(kPatience, [&] {
      const Tag* tag = node.issuer().Resolve(name);
      if (tag == nullptr) return false;
      IssueCall call(*tag, {.tag = name});
      return node.issuer().Issue(call) == Verdict::kRefused && call.refusal().reason == reason;
    });
  }

  static inline Refusal refused_;
  SeededEntropy entropy_{3};
  TempDir folder_;
  MemoryTree tree_{SystemClock()};
  MemoryCoordinator memory_{tree_};
  BlockingCoordinator operator_{memory_, SystemClock()};
  TagStore store_{operator_};
};

TEST_F(SegmentTagsTest, ATagThatIsMadeWhileRunningIsServed) {
  const auto node = Start();
  Create({.name = "order", .strategy = {}, .start = 100});
  EXPECT_EQ(Take(*node), 100);
  EXPECT_EQ(Take(*node), 101);
  EXPECT_EQ(node->segments().status().at("order").supply, 998);
}

TEST_F(SegmentTagsTest, NodesOfOneClusterNeverGiveANumberTwice) {
  Create({.name = "order", .strategy = {}, .step = 10, .step_max = 50});
  const auto one = Start(1), two = Start(2);
  std::set<int64_t> all;
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(all.insert(Take(*one)).second);
    EXPECT_TRUE(all.insert(Take(*two)).second);
  }
  EXPECT_LT(*all.rbegin(), High("order"));
}

TEST_F(SegmentTagsTest, WhatIsLeftGoesBackAtACleanStop) {
  Create({.name = "order", .strategy = {}});
  auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  EXPECT_EQ(Take(*node), 2);
  node->Stop();
  EXPECT_EQ(High("order"), 3);
  EXPECT_EQ(node->segments().status().at("order").wasted, 0);
  node.reset();
  node = Start();
  EXPECT_EQ(Take(*node), 3);
}

TEST_F(SegmentTagsTest, WithoutAMachineIdSegmentTagsAreServed) {
  Create({.name = "order", .strategy = {}});
  const auto holder = Start(1);
  const MachineId machine = *holder->status().claim.machine;
  const RackSplit split = holder->split();
  const auto node = Make(2, split.WorkerOf(machine));
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 1);
  EXPECT_FALSE(node->status().claim.machine.has_value());
  EXPECT_TRUE(Refuses(*node, Reason::kNotReady, "default"));
}

TEST_F(SegmentTagsTest, AChangeOfTheStepKeepsTheNumbersInMemory) {
  Create({.name = "order", .strategy = {}, .step = 10, .step_max = 1000});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  Edit("order", [](TagDefinition& tag) { tag.step = 500; });
  ASSERT_TRUE(
      Eventually(kPatience, [&] { return node->segments().status().at("order").step == 500; }));
  EXPECT_EQ(Take(*node), 2);
}

TEST_F(SegmentTagsTest, ADisabledTagIsRefusedAndGoesOnWhenItComesBack) {
  Create({.name = "order", .strategy = {}});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  Edit("order", [](TagDefinition& tag) { tag.disabled = true; });
  EXPECT_TRUE(Refuses(*node, Reason::kRejected));
  Edit("order", [](TagDefinition& tag) { tag.disabled = false; });
  ASSERT_TRUE(Eventually(kPatience, [&] { return Take(*node) > 0; }));
  EXPECT_GT(Take(*node), 2);
}

TEST_F(SegmentTagsTest, ATagWhoseNodeHasGoneIsStoppedAndTheClusterFrozen) {
  Create({.name = "order", .strategy = {}});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  ASSERT_TRUE(operator_.Multi({Write::Erase(TagPath("order"), Write::kAnyVersion)}).status.ok());
  EXPECT_TRUE(Refuses(*node, Reason::kInternal));
  EXPECT_TRUE(Eventually(kPatience, [&] { return ReadMeta(operator_)->meta.frozen; }));
  EXPECT_EQ(node->segments().status().at("order").supply, 0);
}

TEST_F(SegmentTagsTest, ALedgerThatWentBackStopsItsTagInMemoryToo) {
  Create({.name = "order", .strategy = {}});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  StoredTag stored = *store_.Read("order");
  stored.node.tag.high = 5;
  ASSERT_TRUE(
      operator_
          .Multi({Write::Set(TagPath("order"), *WriteTagNode(stored.node), stored.stat.version)})
          .status.ok());
  EXPECT_TRUE(Refuses(*node, Reason::kStoreDown));
  EXPECT_TRUE(ReadMeta(operator_)->meta.frozen);
}

TEST_F(SegmentTagsTest, AStoreOfAUsersOwnServesUnderTheLedger) {
  Create({.name = "order", .strategy = {}, .store = "memory", .start = 50});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  EXPECT_EQ(node->segments().AddStore(std::make_unique<MemoryStore>()).code(), Code::kConflict);
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 50);
  EXPECT_EQ(High("order"), 1050);
  node->Stop();
  EXPECT_EQ(High("order"), 1050) << "a store takes nothing back";
  EXPECT_EQ(node->segments().status().at("order").wasted, 999);
}

TEST_F(SegmentTagsTest, AStoreThatIsNotThereAndABufferItDoesNotPermitAreRefused) {
  Create({.name = "order", .strategy = {}, .store = "billing"});
  Create({.name = "user", .strategy = {}, .store = "memory", .buffer = TagBuffer::kNone});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  ASSERT_TRUE(node->Start().ok());
  EXPECT_TRUE(Refuses(*node, Reason::kNotReady));
  EXPECT_TRUE(Refuses(*node, Reason::kNotReady, "user"));
}

TEST_F(SegmentTagsTest, WithoutABufferNumbersRiseOverTheWholeCluster) {
  Create({.name = "order", .strategy = {}, .buffer = TagBuffer::kNone});
  const auto one = Start(1), two = Start(2), three = Start(3);
  int64_t last = 0;
  for (int i = 0; i < 100; ++i) {
    for (IssuingNode* node : {one.get(), two.get(), three.get()}) {
      const int64_t id = Take(*node);
      ASSERT_GT(id, last);
      last = id;
    }
  }
  EXPECT_EQ(last, 300) << "and none is left out";
}

TEST_F(SegmentTagsTest, ABurstOfAHundredTimesTheUsualRateIsNeverRefused) {
  Create({.name = "order", .strategy = {}, .step = 10});
  const auto node = Start();
  Take(*node);
  std::atomic<int> refused{0}, got{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 200; ++n) (Take(*node) > 0 ? got : refused) += 1;
      });
    }
  }
  EXPECT_EQ(refused, 0) << refused_;
  EXPECT_EQ(got, 3'200);
}

}  // namespace
}  // namespace firn
