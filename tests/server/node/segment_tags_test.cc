#include "server/node/segment_tags.h"

#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/cluster/slot.h"
#include "tests/server/node/segment_tags_rig.h"
#include "tests/support/memory_store.h"

namespace firn {
namespace {

class SegmentTagsTest : public SegmentTagsRig {
 protected:
  static bool Wasted(const IssuingNode& node, int64_t count) {
    return Eventually(kTagPatience,
                      [&] { return node.segments().status().at("order").wasted == count; });
  }
};

// A store whose first range is overtaken by another server.
class OvertakenStore final : public RangeStore {
 public:
  explicit OvertakenStore(std::function<void()> meanwhile) : meanwhile_(std::move(meanwhile)) {}

  std::string_view name() const override { return "memory"; }
  Status Check(const TagDefinition&) override { return {}; }
  Result<Range> Advance(const TagDefinition&, int64_t at_least, int64_t size) override {
    if (const auto meanwhile = std::exchange(meanwhile_, {})) meanwhile();
    return Range{at_least, at_least + size};
  }

 private:
  std::function<void()> meanwhile_;
};

TEST_F(SegmentTagsTest, ServesATagCreatedWhileRunning) {
  const auto node = Start();
  Create({.name = "order", .strategy = {}, .start = 100});
  EXPECT_EQ(Take(*node), 100);
  EXPECT_EQ(Take(*node), 101);
  EXPECT_EQ(node->segments().status().at("order").supply, 998);
  EXPECT_EQ(node->segments().status("order")->supply, 998);
  EXPECT_EQ(node->segments().status("another"), std::nullopt);
}

TEST_F(SegmentTagsTest, NodesOfOneClusterNeverRepeatANumber) {
  Create({.name = "order", .strategy = {}, .step = 10, .step_max = 50});
  const auto one = Start(1), two = Start(2);
  std::set<int64_t> all;
  for (int i = 0; i < 500; ++i) {
    EXPECT_TRUE(all.insert(Take(*one)).second);
    EXPECT_TRUE(all.insert(Take(*two)).second);
  }
  EXPECT_LT(*all.rbegin(), High("order"));
}

TEST_F(SegmentTagsTest, ACleanStopGivesUnusedNumbersBack) {
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

TEST_F(SegmentTagsTest, ATagReadDuringACleanStopDoesNotDelayIt) {
  Create({.name = "order", .strategy = {}});
  const auto node = Make();
  ASSERT_TRUE(node->StartByHand().ok());
  node->Stop();
  for (int i = 0; i < 100; ++i) node->loop().Round();
  EXPECT_TRUE(node->segments().status().contains("order"));
  EXPECT_TRUE(node->has_stopped());
}

TEST_F(SegmentTagsTest, ServesSegmentTagsWithoutAMachineId) {
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
      Eventually(kTagPatience, [&] { return node->segments().status().at("order").step == 500; }));
  EXPECT_EQ(Take(*node), 2);
}

TEST_F(SegmentTagsTest, RefusesADisabledTagAndContinuesOnceEnabled) {
  Create({.name = "order", .strategy = {}});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  Edit("order", [](TagDefinition& tag) { tag.disabled = true; });
  EXPECT_TRUE(Refuses(*node, Reason::kRejected));
  Edit("order", [](TagDefinition& tag) { tag.disabled = false; });
  ASSERT_TRUE(Eventually(kTagPatience, [&] { return Take(*node) > 0; }));
  EXPECT_GT(Take(*node), 2);
}

TEST_F(SegmentTagsTest, StopsATagWhoseNodeIsMissingAndFreezesTheCluster) {
  Create({.name = "order", .strategy = {}});
  const auto node = Start();
  EXPECT_EQ(Take(*node), 1);
  ASSERT_TRUE(operator_.Multi({Write::Erase(TagPath("order"), Write::kAnyVersion)}).status.ok());
  EXPECT_TRUE(Refuses(*node, Reason::kInternal));
  EXPECT_TRUE(Eventually(kTagPatience, [&] { return ReadMeta(operator_)->meta.frozen; }));
  EXPECT_EQ(node->segments().status().at("order").supply, 0);
}

TEST_F(SegmentTagsTest, ALedgerThatFellStopsItsTagInMemoryToo) {
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
  EXPECT_TRUE(Eventually(kTagPatience, [&] { return ReadMeta(operator_)->meta.frozen; }));
}

TEST_F(SegmentTagsTest, ServesAUsersOwnStoreUnderTheLedger) {
  Create({.name = "order", .strategy = {}, .store = "memory", .start = 50});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  EXPECT_EQ(node->segments().AddStore(std::make_unique<MemoryStore>()).code(), Code::kConflict);
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 50);
  EXPECT_EQ(High("order"), 1050);
  node->Stop();
  EXPECT_EQ(High("order"), 1050) << "a store does not take a tail back";
  EXPECT_EQ(node->segments().status().at("order").wasted, 999);
}

// The store does not take the tail back, and says so when the tag already has another store.
TEST_F(SegmentTagsTest, CountsNumbersInMemoryAsWasteWhenTheStoreChanges) {
  Create({.name = "order", .strategy = {}, .store = "memory"});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 1);
  Edit("order", [](TagDefinition& tag) { tag.store = "registry"; });
  EXPECT_TRUE(Wasted(*node, 999));
  EXPECT_TRUE(Eventually(kTagPatience, [&] { return Take(*node) == 1001; }));
  Edit("order", [](TagDefinition& tag) { tag.store = "memory"; });
  ASSERT_TRUE(Eventually(kTagPatience, [&] { return High("order") == 1002; })) << "given back";
  EXPECT_TRUE(Wasted(*node, 999));
  node->Stop();
}

TEST_F(SegmentTagsTest, KeepsTheWasteOfAStoreWhenTheTagGetsAnother) {
  Create({.name = "order", .strategy = {}, .store = "memory"});
  auto node = Make();
  const auto overtake = [this] { Edit("order", [](TagDefinition& tag) { tag.start = 5'000; }); };
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<OvertakenStore>(overtake)).ok());
  ASSERT_TRUE(node->Start().ok());
  EXPECT_GE(Take(*node), 5'000);
  const int64_t wasted = node->segments().status().at("order").wasted;
  EXPECT_GE(wasted, 1'000);
  Edit("order", [](TagDefinition& tag) { tag.store = "registry"; });
  EXPECT_TRUE(Eventually(kTagPatience,
                         [&] { return node->segments().status().at("order").wasted > wasted; }));
}

TEST_F(SegmentTagsTest, RefusesAnUnknownStoreAndABufferThatItDoesNotPermit) {
  Create({.name = "order", .strategy = {}, .store = "billing"});
  Create({.name = "user", .strategy = {}, .store = "memory", .buffer = TagBuffer::kNone});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  ASSERT_TRUE(node->Start().ok());
  const auto refuses_for_good = [&] {  // not only until the definitions are read
    return Refuses(*node, Reason::kNotReady, "user") && !refused_.another_server_may_help;
  };
  EXPECT_TRUE(Eventually(kTagPatience, refuses_for_good));
  EXPECT_TRUE(Refuses(*node, Reason::kNotReady));
  EXPECT_TRUE(refused_.another_server_may_help) << "it may have the store";
}

TEST_F(SegmentTagsTest, KeepsItsNumbersAfterAnEditToABufferThatTheStoreDoesNotPermit) {
  Create({.name = "order", .strategy = {}, .store = "memory"});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 1);
  const auto outdated = [&] { return node->status().outdated->contains("order"); };
  Edit("order", [](TagDefinition& tag) { tag.buffer = TagBuffer::kNone; });
  EXPECT_TRUE(Eventually(kTagPatience, outdated));
  EXPECT_EQ(Take(*node), 2);
  for (int i = 3; i <= 3'000; ++i) ASSERT_EQ(Take(*node), i) << "further ranges come";
  Edit("order", [](TagDefinition& tag) { tag.buffer = TagBuffer::kDouble; });
  EXPECT_TRUE(Eventually(kTagPatience, [&] { return !outdated(); }));
  EXPECT_EQ(Take(*node), 3'001);
}

TEST_F(SegmentTagsTest, RefusesToStandInForAStoreThatDoesNotRecordItsOwner) {
  Create({.name = "order", .strategy = {}, .store = "memory"});
  auto node = Make();
  ASSERT_TRUE(node->segments().AddStore(std::make_unique<MemoryStore>()).ok());
  ASSERT_TRUE(node->Start().ok());
  EXPECT_EQ(Take(*node), 1);
  Edit("order", [](TagDefinition& tag) { tag.when_store_is_away = StoreAway::kLedger; });
  EXPECT_TRUE(Refuses(*node, Reason::kNotReady));
  EXPECT_FALSE(refused_.another_server_may_help);
}

TEST_F(SegmentTagsTest, NumbersRiseOverTheClusterWithoutABuffer) {
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
  EXPECT_EQ(last, 300) << "no number is skipped";
}

TEST_F(SegmentTagsTest, ServesABurstOfAHundredTimesTheUsualRate) {
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

// Shows n as 1,000,000 - n.
class Mirror final : public Plugin {
 public:
  std::string_view name() const override { return "obfuscate"; }
  int order() const override { return 900; }
  std::optional<Refusal> After(const Request&, Runs& runs) override {
    Runs mirrored;
    runs.ForEach([&](int64_t id) { mirrored.Add({1'000'000 - id, 1, 1}); });
    runs = std::move(mirrored);
    return std::nullopt;
  }
};

class RedefinedTagTest : public SegmentTagsRig {
 protected:
  std::unique_ptr<IssuingNode> StartWithMirror() {
    auto node = Make();
    EXPECT_TRUE(node->catalogue()
                    .AddPlugin("obfuscate",
                               [](const TagDefinition&) -> Result<std::shared_ptr<Plugin>> {
                                 return std::shared_ptr<Plugin>(std::make_shared<Mirror>());
                               })
                    .ok());
    EXPECT_TRUE(node->Start().ok());
    EXPECT_TRUE(node->WaitUntilServing(kTagPatience).ok());
    EXPECT_TRUE(
        Eventually(kTagPatience, [&] { return node->issuer().Resolve("order") != nullptr; }));
    return node;
  }
  void Obfuscate() {
    Edit("order", [](TagDefinition& tag) {
      tag.plugins = {"obfuscate"};
      tag.obfuscate_width = 6;
      tag.obfuscate_key = "k1";
      tag.obfuscate_check = "c6a13b";
    });
  }
  // Returns false if a number was issued in either form: from then on the form is fixed.
  bool GiveText(const std::string& text) {
    Status done = Conflict("not tried");
    while (done.code() == Code::kConflict) {
      const StoredTag read = *store_.Read("order");
      if (read.tag().high > 0) return false;
      TagDefinition after = read.tag();
      after.text = text;
      done = store_.Replace(read, after);
    }
    EXPECT_TRUE(done.ok()) << done;
    return done.ok();
  }
  // Repeats a call until it has its number, as callers do when they are asked to retry.
  static int64_t Next(IssuingNode& node) {
    int64_t id = -1;
    EXPECT_TRUE(Eventually(kTagPatience, [&] { return (id = Take(node)) > 0; }));
    return id;
  }
};

TEST_F(RedefinedTagTest, IssuesNoNumberInTheFormBeforeAnEdit) {
  Create({.name = "order", .strategy = {}});
  const auto node = StartWithMirror();
  Obfuscate();  // which the node has not read yet
  for (int i = 1; i <= 7; ++i) EXPECT_EQ(Next(*node), 1'000'000 - i);
}

TEST_F(RedefinedTagTest, IssuesNoNumberInTheFormBeforeAnEditWithoutABuffer) {
  Create({.name = "order", .strategy = {}, .buffer = TagBuffer::kNone});
  const auto node = StartWithMirror();
  Obfuscate();
  for (int i = 1; i <= 7; ++i) EXPECT_GT(Next(*node), 900'000);
}

TEST_F(RedefinedTagTest, AWaitingCallIsAskedToRetry) {
  Create({.name = "order", .strategy = {}});
  const auto node = StartWithMirror();
  IssueCall call(*node->issuer().Resolve("order"), {.tag = "order"});
  Obfuscate();
  Verdict verdict = Verdict::kWait;
  ASSERT_TRUE(Eventually(kTagPatience, [&] {
    verdict = node->issuer().Issue(call);
    return verdict != Verdict::kWait;
  }));
  ASSERT_EQ(verdict, Verdict::kRefused);
  EXPECT_EQ(call.refusal().reason, Reason::kNotReady);
  EXPECT_TRUE(call.refusal().another_server_may_help);
  EXPECT_GT(Next(*node), 900'000);
}

TEST_F(RedefinedTagTest, AnEditThatIsRevertedAtOnceKeepsTheTagServed) {
  Create({.name = "order", .strategy = {}});
  const auto node = StartWithMirror();
  for (int i = 0; i < 20 && GiveText("{id:09}"); ++i) {
    PatientCaller caller(node->issuer(), SystemClock(), Milliseconds(1));
    IssueCall call;
    int64_t id = 0;
    caller.IssueOne(call, *node->issuer().Resolve("order"), {.tag = "order"}, &id);
    if (!GiveText("")) break;
  }
  EXPECT_GT(Next(*node), 0);
}

}  // namespace
}  // namespace firn
