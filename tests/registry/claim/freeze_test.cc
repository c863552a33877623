#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "registry/claim/inspection.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/registry/busy_coordinator.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr Slot kSlot{0, 1};
constexpr WallMs kBound{1'750'000'600'000};
constexpr char kWhy[] = "the slot's bound is lower than what was acknowledged";

// A holder of a slot up to kBound that has detected a rollback of the registry, and the registry's
// contents at that time.
class FreezeTest : public testing::Test {
 protected:
  FreezeTest() : link_(std::make_unique<MemoryCoordinator>(tree_), clock_), registry_(link_) {
    AsOperator([&](BlockingCoordinator& registry) {
      return MakeCluster(registry, {.rack_bits = 0, .workers = 2}, entropy_);
    });
    held_.slot = kSlot;
    held_.nonce = Nonce(1, 2);
    held_.bound = kBound;
    held_.uuid = Meta().uuid;
    Dispatch();
  }

  void AsOperator(const std::function<Status(BlockingCoordinator&)>& verb) {
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    const Status done = verb(registry);
    ASSERT_TRUE(done.ok()) << done;
  }
  void Do(std::vector<Write> writes) {
    AsOperator([&](BlockingCoordinator& registry) { return registry.Multi(writes).status; });
  }
  void SetMeta(const std::function<void(ClusterMeta&)>& change) {
    ClusterMeta meta = Meta();
    change(meta);
    Do({Write::Set(kMetaPath, FormatMeta(meta), Write::kAnyVersion)});
  }
  void Lift(WallMs floor) {
    SetMeta([&](ClusterMeta& meta) { meta.floor = floor; });
  }
  void PutRecord(const std::string& data) {
    Do({Write::Set(SlotPath(kSlot), data, Write::kAnyVersion)});
  }
  void PutNonce(Nonce nonce) { PutRecord(FormatSlotRecord({.nonce = nonce, .bound = kBound})); }

  // Returns the result, which must arrive within half a minute.
  Code Run(std::string why = kWhy) {
    task_ = FreezeAndInspect(&async_registry_, held_, std::move(why));
    async_registry_.Start(task_);
    for (int i = 0; i < 600 && task_.busy(); ++i) {
      clock_.Advance(Milliseconds(50));
      Dispatch();
      async_registry_.Tick(clock_.Boot());
    }
    ended_ = task_.Take();
    return ended_.code();
  }
  void Dispatch() { registry_.Dispatch(Milliseconds(0)); }

  ClusterMeta Meta() { return *ParseMeta(tree_.Peek(kMetaPath)->data); }
  int64_t MetaVersion() { return tree_.Peek(kMetaPath)->stat.version; }

  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{11};
  FaultyCoordinator link_;
  BusyCoordinator registry_;
  Tenure::Terms held_;
  AsyncRegistry async_registry_{registry_};
  Task<Status> task_;
  Status ended_;
};

// --- frozen --------------------------------------------------------------------------------------

TEST_F(FreezeTest, FreezesInTheSameEraAndSaysWhy) {
  const ClusterMeta before = Meta();
  EXPECT_EQ(Run(), Code::kOk);
  ClusterMeta frozen = before;
  frozen.frozen = true;
  frozen.reason = kWhy;
  EXPECT_EQ(Meta(), frozen) << "nothing else changes";
}

TEST_F(FreezeTest, ALongReasonLosesItsMiddle) {
  const std::string remedy = "; run firn restore";
  EXPECT_EQ(Run(std::string(5'000, 'x') + remedy), Code::kOk);
  EXPECT_EQ(Meta().reason.size(), ClusterMeta::kReasonBytesMax);
  EXPECT_EQ(Meta().reason.substr(Meta().reason.size() - remedy.size()), remedy);
}

// The cluster that replaced this one may issue the holder's ids.
TEST_F(FreezeTest, FreezesAClusterWithAnotherUuid) {
  held_.uuid = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1";
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_TRUE(Meta().frozen);
}

TEST_F(FreezeTest, FreezesIfTheFloorIsJustBelowTheHoldersBound) {
  Lift(kBound - kMs);
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_TRUE(Meta().frozen);
}

// The process that creates it would unfreeze it unconditionally.
TEST_F(FreezeTest, FreezesAClusterThatIsBeingMade) {
  SetMeta([](ClusterMeta& meta) {
    meta.frozen = true;
    meta.reason = kBeingMade;
  });
  const int64_t version = MetaVersion();
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_EQ(Meta().reason, kWhy);
  EXPECT_EQ(MetaVersion(), version + 1) << "its maker's next write is refused";
}

// --- not frozen ----------------------------------------------------------------------------------

TEST_F(FreezeTest, DoesNotFreezeARestoredCluster) {
  for (const WallMs floor : {kBound, kBound + kMs}) {
    Lift(floor);
    const int64_t version = MetaVersion();
    EXPECT_EQ(Run(), Code::kOk);
    EXPECT_EQ(MetaVersion(), version);
  }
}

TEST_F(FreezeTest, AFrozenClusterKeepsItsReason) {
  SetMeta([](ClusterMeta& meta) {
    meta.frozen = true;
    meta.reason = "another's";
  });
  const int64_t version = MetaVersion();
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_EQ(Meta().reason, "another's");
  EXPECT_EQ(MetaVersion(), version);
}

TEST_F(FreezeTest, DoesNotCreateAMissingRootNode) {
  tree_.Wipe();
  Dispatch();
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_FALSE(tree_.Peek(kMetaPath).has_value());
}

TEST_F(FreezeTest, DoesNotOverwriteAnUnreadableRootNode) {
  Do({Write::Set(kMetaPath, "rubbish", Write::kAnyVersion)});
  EXPECT_EQ(Run(), Code::kUnavailable);
  EXPECT_FALSE(ended_.message().empty());
  EXPECT_EQ(tree_.Peek(kMetaPath)->data, "rubbish");
}

// --- changes between its read and its write ------------------------------------------------------

TEST_F(FreezeTest, DoesNotFreezeAfterAConcurrentRestore) {
  registry_.OnceAfterReading(kMetaPath, [&] { Lift(kBound); });
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_FALSE(Meta().frozen);
}

TEST_F(FreezeTest, KeepsOtherConcurrentChangesOfTheRootNode) {
  registry_.OnceAfterReading(kMetaPath, [&] { Lift(kBound - kMs); });
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_TRUE(Meta().frozen);
  EXPECT_EQ(Meta().floor, kBound - kMs);
}

// The root node's version recurs in re-created data; the era does not.
TEST_F(FreezeTest, DoesNotFreezeARecreatedClusterWithTheSameNumbersAndSession) {
  const int64_t version = MetaVersion();
  registry_.OnceAfterReading(kMetaPath, [&] {
    tree_.Load({}, MemoryTree::Sessions::kStay);
    AsOperator([&](BlockingCoordinator& registry) {
      return MakeCluster(registry, {.rack_bits = 0, .workers = 2, .floor = kBound}, entropy_);
    });
    ASSERT_EQ(MetaVersion(), version);
  });
  EXPECT_EQ(Run(), Code::kOk);
  EXPECT_FALSE(Meta().frozen);
  EXPECT_EQ(Meta().floor, kBound);
}

TEST_F(FreezeTest, DoesNotWriteInAnotherSessionThanItRead) {
  const MemoryTree::Image whole = tree_.Save();
  registry_.OnceAfterReading(kMetaPath, [&] {
    tree_.Load(whole);
    Lift(kBound);
  });
  Run();
  EXPECT_FALSE(Meta().frozen);
}

// --- a registry that does not answer -------------------------------------------------------------

TEST_F(FreezeTest, DeterminesTheOutcomeOfALostWriteOrAnswer) {
  for (const Fate::Kind kind : {Fate::Kind::kRequestLost, Fate::Kind::kAnswerLost}) {
    SetMeta([](ClusterMeta& meta) { meta.frozen = false; });
    link_.Script(Verb::kMulti, {kind, {}, Milliseconds(100)});
    EXPECT_EQ(Run(), Code::kOk);
    EXPECT_TRUE(Meta().frozen);
  }
}

TEST_F(FreezeTest, GivesUpAfterAFewTries) {
  link_.SetPlan([](Verb verb) {
    return Fate{
        verb == Verb::kMulti ? Fate::Kind::kRequestLost : Fate::Kind::kDone, {}, Milliseconds(100)};
  });
  EXPECT_EQ(Run(), Code::kUnavailable);
  EXPECT_FALSE(ended_.message().empty());
  EXPECT_FALSE(Meta().frozen);
}

TEST_F(FreezeTest, AFailedReadIsNotAnAcknowledgement) {
  link_.Script(Verb::kRead, {Fate::Kind::kRefused, {}, {}});
  EXPECT_EQ(Run(), Code::kUnavailable);
  EXPECT_FALSE(Meta().frozen);
}

// --- the check of the holder's slot --------------------------------------------------------------

TEST_F(FreezeTest, ReportsAnotherProcessesClaimInTheSlot) {
  struct Row {
    const char* what;
    std::string record;
    Code outcome;
  };
  const Row rows[] = {
      {"our own claim", FormatSlotRecord({.nonce = held_.nonce, .bound = kBound}), Code::kOk},
      {"never used, or released", FormatSlotRecord({}), Code::kOk},
      {"another's", FormatSlotRecord({.nonce = Nonce(3, 4)}), Code::kConflict},
      {"perhaps another's", "rubbish", Code::kConflict},
  };
  for (const Row& row : rows) {
    SetMeta([](ClusterMeta& meta) { meta.frozen = false; });
    PutRecord(row.record);
    EXPECT_EQ(Run(), row.outcome) << row.what;
    EXPECT_TRUE(Meta().frozen) << row.what;
  }
  Do({Write::Erase(SlotPath(kSlot), Write::kAnyVersion)});
  EXPECT_EQ(Run(), Code::kOk) << "no record, no holder";
}

// The holder inspects the slot only after the freeze, when no server can claim it.
TEST_F(FreezeTest, SeesAClaimMadeBeforeTheFreeze) {
  registry_.OnceAfterReading(kMetaPath, [&] { PutNonce(Nonce(3, 4)); });
  EXPECT_EQ(Run(), Code::kConflict);
  EXPECT_TRUE(Meta().frozen);
}

TEST_F(FreezeTest, AFailedReadOfTheSlotIsNotSuccess) {
  link_.Script(Verb::kRead, {});
  link_.Script(Verb::kRead, {Fate::Kind::kRefused, {}, {}});
  EXPECT_EQ(Run(), Code::kUnavailable);
  EXPECT_TRUE(Meta().frozen);
}

}  // namespace
}  // namespace firn
