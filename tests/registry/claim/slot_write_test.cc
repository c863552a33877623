#include "registry/claim/slot_write.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr Slot kSlot{0, 0};
constexpr WallMs kBound{1'750'000'010'000};
using Outcome = SlotWritten::Outcome;

// A pending change.
struct Writing {
  Writing(Coordinator& coordinator, Entropy& entropy, const SlotChange& change)
      : async_registry(coordinator), task(WriteSlot(&async_registry, &entropy, change)) {
    async_registry.Start(task);
  }

  AsyncRegistry async_registry;
  Task<SlotWritten> task;
  SlotWritten ended{};
};

// A writer whose writes can be lost, and a registry whose numbers can recur.
class SlotWriteTest : public testing::Test {
 protected:
  SlotWriteTest() : link_(std::make_unique<MemoryCoordinator>(tree_), clock_) {
    Make();
    link_.Dispatch(Milliseconds(0));
  }

  void AsOperator(const std::function<Status(BlockingCoordinator&)>& verb) {
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    const Status done = verb(registry);
    ASSERT_TRUE(done.ok()) << done;
  }
  void Make() {
    AsOperator([&](BlockingCoordinator& registry) {
      return MakeCluster(registry, {.rack_bits = 0, .workers = 1}, entropy_);
    });
  }
  void Put(const SlotRecord& record) {
    AsOperator([&](BlockingCoordinator& registry) {
      return registry.Multi({Write::Set(SlotPath(kSlot), FormatSlotRecord(record), 0)}).status;
    });
  }
  void PutMeta(const ClusterMeta& meta) {
    AsOperator([&](BlockingCoordinator& registry) {
      return registry.Multi({Write::Set(kMetaPath, FormatMeta(meta), Write::kAnyVersion)}).status;
    });
  }
  static SlotRecord RecordOf(uint64_t nonce, WallMs bound) {
    return {.nonce = Nonce(nonce, nonce), .bound = bound};
  }

  // Returns a change of the current record to one with nonce 9.
  SlotChange Change() {
    const Node meta = *tree_.Peek(kMetaPath);
    const Node node = *tree_.Peek(SlotPath(kSlot));
    const SlotRecord record = *ParseSlotRecord(node.data);
    Tenure::Terms over;
    over.slot = kSlot;
    over.meta_version = meta.stat.version;
    over.era = ParseMeta(meta.data)->era;
    over.uuid = ParseMeta(meta.data)->uuid;
    over.version = node.stat.version;
    over.created_zxid = node.stat.created_zxid;
    over.nonce = record.nonce;
    over.word = record.word;
    over.bound = record.bound;
    return {.session = link_.session(),
            .over = over,
            .record = RecordOf(9, record.bound + Milliseconds(10'000)),
            .endpoint = {}};
  }
  Outcome Finish(Writing& write) {
    for (int i = 0; i < 1'000 && write.task.busy(); ++i) {
      clock_.Advance(Milliseconds(5));
      link_.Dispatch(Milliseconds(0));
      write.async_registry.Tick(clock_.Boot());
    }
    write.ended = write.task.Take();
    return write.ended.outcome;
  }
  void PutPast(const std::string& data) {
    AsOperator([&](BlockingCoordinator& registry) {
      return registry.Multi({Write::Create(PastPath(kSlot), data, Lifetime::kPersistent)}).status;
    });
  }
  std::vector<PastHolder> Past() {
    const auto node = tree_.Peek(PastPath(kSlot));
    return node.has_value() ? PastHolders::Parse(node->data)->holders() : std::vector<PastHolder>();
  }
  Nonce Stands() { return ParseSlotRecord(tree_.Peek(SlotPath(kSlot))->data)->nonce; }

  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{3};
  FaultyCoordinator link_;
};

constexpr Fate kLost{Fate::Kind::kRequestLost, {}, Milliseconds(100)};

TEST_F(SlotWriteTest, ResendsALostWriteOverTheRecordThatWasRead) {
  Put(RecordOf(1, kBound));
  link_.Script(Verb::kMulti, kLost);
  Writing write(link_, entropy_, Change());
  EXPECT_EQ(Finish(write), Outcome::kApplied);
  EXPECT_EQ(Stands(), Nonce(9, 9));
}

TEST_F(SlotWriteTest, DoesNotResendUnderARootNodeThatRefusesClaims) {
  const auto before = tree_.Save();
  const ClusterMeta meta = *ParseMeta(tree_.Peek(kMetaPath)->data);
  ClusterMeta frozen = meta;
  frozen.frozen = true;
  ClusterMeta lifted = meta;
  lifted.floor = kBound;
  for (const ClusterMeta& others : {frozen, lifted}) {
    tree_.Load(before);
    link_.Dispatch(Milliseconds(0));
    PutMeta(meta);
    link_.Script(Verb::kMulti, kLost);
    const SlotChange change = Change();
    Writing write(link_, entropy_, change);
    tree_.Load(before);
    PutMeta(others);
    ASSERT_EQ(tree_.Peek(kMetaPath)->stat.version, change.over.meta_version);
    EXPECT_EQ(Finish(write), Outcome::kOther);
    EXPECT_EQ(Stands(), Nonce());
  }
}

TEST_F(SlotWriteTest, OurNonceWithAnotherWordBelongsToACopy) {
  Put(RecordOf(1, kBound));
  link_.Script(Verb::kMulti, kLost);
  SlotChange change = Change();
  change.record.word = Nonce(4, 4);
  Writing write(link_, entropy_, change);
  SlotRecord copys = change.record;
  copys.word = Nonce(5, 5);
  AsOperator([&](BlockingCoordinator& registry) {
    return registry
        .Multi({Write::Set(SlotPath(kSlot), FormatSlotRecord(copys), change.over.version)})
        .status;
  });
  EXPECT_EQ(Finish(write), Outcome::kOther);
}

// All writes from one version have the same word.
TEST_F(SlotWriteTest, AnEarlierRenewalIsNotTheLowerBoundThatWasSentAfterIt) {
  Put(RecordOf(9, kBound));
  link_.Script(Verb::kMulti, kLost);
  SlotChange change = Change();
  SlotRecord renewal = change.record;
  change.record.bound = kBound - Milliseconds(5'000);
  Writing write(link_, entropy_, change);
  AsOperator([&](BlockingCoordinator& registry) {
    return registry
        .Multi({Write::Set(SlotPath(kSlot), FormatSlotRecord(renewal), change.over.version)})
        .status;
  });
  EXPECT_EQ(Finish(write), Outcome::kOther);
}

TEST_F(SlotWriteTest, RefusesTheSameNumbersInAnotherEra) {
  const SlotChange change = Change();
  tree_.Load({}, MemoryTree::Sessions::kStay);
  Make();
  ASSERT_EQ(tree_.Peek(kMetaPath)->stat.version, change.over.meta_version);
  ASSERT_EQ(tree_.Peek(SlotPath(kSlot))->stat.created_zxid, change.over.created_zxid);
  Writing write(link_, entropy_, change);
  EXPECT_EQ(Finish(write), Outcome::kOther);
  EXPECT_EQ(write.ended.reason.find("the cluster was re-created"), 0u) << write.ended.reason;
  EXPECT_EQ(Stands(), Nonce());
}

TEST_F(SlotWriteTest, TheSameNumbersWithAnotherRecordAreForeign) {
  const auto before = tree_.Save();
  for (const SlotRecord& others :
       {RecordOf(2, kBound), RecordOf(1, kBound + Milliseconds(1)), RecordOf(0, kBound)}) {
    tree_.Load(before);
    link_.Dispatch(Milliseconds(0));
    Put(RecordOf(1, kBound));
    link_.Script(Verb::kMulti, kLost);
    const SlotChange change = Change();
    Writing write(link_, entropy_, change);
    tree_.Load(before);
    Put(others);
    ASSERT_EQ(tree_.Peek(SlotPath(kSlot))->stat.version, change.over.version);
    ASSERT_EQ(tree_.Peek(SlotPath(kSlot))->stat.created_zxid, change.over.created_zxid);
    EXPECT_EQ(Finish(write), Outcome::kOther);
    EXPECT_EQ(Stands(), others.nonce);
  }
}

TEST_F(SlotWriteTest, TheSameNumbersInAnotherClusterAreForeign) {
  Put(RecordOf(1, kBound));
  link_.Script(Verb::kMulti, kLost);
  const SlotChange change = Change();
  Writing write(link_, entropy_, change);
  tree_.Wipe();
  Make();
  Put(RecordOf(1, kBound));
  ASSERT_EQ(Change().over.version, change.over.version);
  ASSERT_EQ(Change().over.created_zxid, change.over.created_zxid);
  ASSERT_EQ(Change().over.meta_version, change.over.meta_version);
  EXPECT_EQ(Finish(write), Outcome::kOther);
  EXPECT_EQ(Stands(), Nonce(1, 1));
}

TEST_F(SlotWriteTest, DoesNotResendInANewSession) {
  Put(RecordOf(1, kBound));
  link_.Script(Verb::kMulti, kLost);
  Writing write(link_, entropy_, Change());
  tree_.Expire(link_.session());
  EXPECT_EQ(Finish(write), Outcome::kUnknown);
  EXPECT_EQ(Stands(), Nonce(1, 1));
}

TEST_F(SlotWriteTest, RecognisesAnAppliedWriteInANewSession) {
  Put(RecordOf(1, kBound));
  link_.Script(Verb::kMulti, {Fate::Kind::kAnswerLost, {}, Milliseconds(100)});
  Writing write(link_, entropy_, Change());
  tree_.Expire(link_.session());
  EXPECT_EQ(Finish(write), Outcome::kApplied);
}

PastHolder Holding(const std::string& owner, int64_t seconds) {
  return {owner, "host", 7, kBound + Milliseconds(seconds * 1'000),
          kBound + Milliseconds((seconds + 1) * 1'000)};
}

TEST_F(SlotWriteTest, TheSameWriteAddsAnEndedHoldingToThePast) {
  for (const char* owner : {"a", "b"}) {
    SlotChange change = Change();
    change.ended = {Holding(owner, owner[0] - 'a')};
    Writing write(link_, entropy_, change);
    ASSERT_EQ(Finish(write), Outcome::kApplied) << write.ended.reason;
  }
  EXPECT_EQ(Past(), (std::vector{Holding("a", 0), Holding("b", 1)}));
}

TEST_F(SlotWriteTest, ARefusedWriteAddsNothingToThePast) {
  SlotChange change = Change();
  change.ended = {Holding("a", 0)};
  Put(RecordOf(1, kBound));
  Writing write(link_, entropy_, change);
  EXPECT_EQ(Finish(write), Outcome::kOther);
  EXPECT_FALSE(tree_.Peek(PastPath(kSlot)).has_value());
}

TEST_F(SlotWriteTest, AResentWriteAddsToThePastOnce) {
  for (const Fate::Kind fate : {Fate::Kind::kRequestLost, Fate::Kind::kAnswerLost}) {
    tree_.Wipe();
    Make();
    link_.Dispatch(Milliseconds(0));
    link_.Script(Verb::kMulti, {fate, {}, Milliseconds(100)});
    SlotChange change = Change();
    change.ended = {Holding("a", 0)};
    Writing write(link_, entropy_, change);
    ASSERT_EQ(Finish(write), Outcome::kApplied) << write.ended.reason;
    EXPECT_EQ(Past(), std::vector{Holding("a", 0)});
  }
}

TEST_F(SlotWriteTest, ReplacesAnUnreadablePast) {
  PutPast("scribble");
  SlotChange change = Change();
  change.ended = {Holding("a", 0)};
  Writing write(link_, entropy_, change);
  ASSERT_EQ(Finish(write), Outcome::kApplied) << write.ended.reason;
  EXPECT_EQ(Past(), std::vector{Holding("a", 0)});
}

TEST_F(SlotWriteTest, SendsNothingIfThePastIsNotAnswered) {
  for (const Fate::Kind fate : {Fate::Kind::kRefused, Fate::Kind::kRequestLost}) {
    link_.Script(Verb::kRead, {fate, {}, Milliseconds(100)});
    SlotChange change = Change();
    change.ended = {Holding("a", 0)};
    Writing write(link_, entropy_, change);
    EXPECT_EQ(Finish(write), Outcome::kNotApplied) << write.ended.reason;
    EXPECT_NE(Stands(), Nonce(9, 9));
  }
}

TEST_F(SlotWriteTest, APastThatIsDeletedOrCreatedMeanwhileDoesNotFailTheWrite) {
  for (const bool there : {true, false}) {
    tree_.Wipe();
    Make();
    link_.Dispatch(Milliseconds(0));
    if (there) PutPast(PastHolders().Text());
    SlotChange change = Change();
    change.ended = {Holding("a", 0)};
    Writing write(link_, entropy_, change);
    link_.Dispatch(Milliseconds(0));  // the past is read, the write is not sent yet
    if (there) {
      AsOperator([&](BlockingCoordinator& registry) {
        return registry.Multi({Write::Erase(PastPath(kSlot), Write::kAnyVersion)}).status;
      });
    } else {
      PutPast(PastHolders().Text());
    }
    EXPECT_EQ(Finish(write), Outcome::kApplied) << write.ended.reason;
    EXPECT_EQ(Stands(), Nonce(9, 9));
  }
}

}  // namespace
}  // namespace firn
