#include "registry/operate/restore.h"

#include <optional>

#include <gtest/gtest.h>

#include "common/time/civil_time.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/freeze.h"
#include "registry/cluster/tag_store.h"
#include "tests/registry/operate/restore_fixture.h"

namespace firn {
namespace {

TEST_F(RestoreTest, ReservesMachineIdsAgainAndCreatesTheirRecords) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  facts.reserved = {{MachineId(2), MachineId(5), "the old system"}};
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->reserved_late.empty());
  AsOperator([&](BlockingCoordinator& registry) {
    for (uint32_t worker = 0; worker < 6; ++worker) {
      const auto node = registry.Read(SlotPath({0, worker}));
      ASSERT_TRUE(node.ok()) << worker;
      const auto record = ParseSlotRecord(node->data);
      EXPECT_EQ(record->owner, worker < 2 ? "" : "reserved: the old system") << worker;
      EXPECT_EQ(record->retired, worker >= 2) << worker;
    }
  });
}

// The command was first pasted without its reservations, and a server claimed one of the machine
// ids.
TEST_F(RestoreTest, ReportsReservedMachineIdsThatAServerHasClaimed) {
  PutBound(kRestoreTime);
  RestoreFacts facts = Facts();
  facts.reserved = {{MachineId(1), MachineId(1), "the old system"}};
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->reserved_late, std::vector<Slot>({{0, 1}}));
}

// An unreachable holder may have renewed since its bound was read. After an earlier restore, its
// bound is ahead of every clock.
TEST_F(RestoreTest, TheFloorIsThreeWindowsAboveEveryKnownBound) {
  const WallMs ahead = kRestoreTime + kAnHour;
  const WallMs want = ahead + 3 * kWindow;
  EXPECT_EQ(Restore()->floor, kRestoreTime + 3 * kWindow + kSkew);
  EXPECT_EQ(Meta().meta.floor, kRestoreTime + 3 * kWindow + kSkew);
  Make({});
  EXPECT_EQ(Restore({kRestoreTime, ahead})->floor, want);
  Make({});
  PutBound(ahead);
  EXPECT_EQ(Restore()->floor, want);
  Make(ahead);
  EXPECT_EQ(Restore()->floor, want);
}

// Programs issue ids under leases whose bounds a server may have reported before it died.
TEST_F(RestoreTest, TheFloorIsAboveReportedBoundsOfLeases) {
  const WallMs leased = kRestoreTime + kAnHour;
  RestoreFacts facts = Facts();
  AddReport({.lease_bound = leased}, facts);
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_GE(report->floor, leased + 3 * kWindow);
}

// A rollback can remove the record of the largest window; running servers still have it.
TEST_F(RestoreTest, TheFloorIsThreeOfTheLargestReportedWindows) {
  RestoreFacts facts = Facts();
  AddReport({.bound = kRestoreTime, .window = 9 * kWindow}, facts);
  AddReport({.bound = kRestoreTime, .window = kWindowMax + Milliseconds(1)}, facts);
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->floor, kRestoreTime + 27 * kWindow + kSkew);
}

TEST_F(RestoreTest, SetsTheShareOfLeasesOnlyWithTheRootNode) {
  RestoreFacts facts = Facts();
  facts.lease_share = 10;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.lease_share, 50);
  tree_.Wipe();
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.lease_share, 10);
  Write1(Write::Create(kSettingsPath, R"({"lease_share":70})", Lifetime::kPersistent));
  facts.window = 9 * kWindow;
  ASSERT_TRUE(RestoreBy(facts).ok());
  const ClusterSettings settings = *ParseClusterSettings(tree_.Peek(kSettingsPath)->data);
  EXPECT_EQ(settings.LeaseShareUnder(Meta().meta), 70);
  EXPECT_EQ(settings.window, 9 * kWindow);
}

TEST_F(RestoreTest, RepeatedRestoresDoNotRaiseTheFloorWithoutLimit) {
  for (int times = 1; times <= 20; ++times) {
    const Milliseconds lead = std::max(Meta().meta.floor - kRestoreTime, kSkew);
    const auto report = Restore({}, lead);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->floor, kRestoreTime + kSkew + times * 3 * kWindow);
    EXPECT_TRUE(report->retired.empty());
    PutBound(report->floor);
  }
}

TEST_F(RestoreTest, EndsThePreviousEraAndAllOthers) {
  const Nonce before = Meta().meta.era;
  const Nonce stray(8, 8);
  Write1(Write::Create(EraPath(stray), "", Lifetime::kPersistent));
  ASSERT_TRUE(tree_.Peek(EraPath(before)).has_value());
  ASSERT_TRUE(Restore().ok());
  EXPECT_NE(Meta().meta.era, before);
  EXPECT_TRUE(tree_.Peek(EraPath(Meta().meta.era)).has_value());
  EXPECT_FALSE(tree_.Peek(EraPath(before)).has_value());
  EXPECT_FALSE(tree_.Peek(EraPath(stray)).has_value());
}

TEST_F(RestoreTest, RepairsAClusterWithoutItsErasNode) {
  Write1(Write::Erase(EraPath(Meta().meta.era), Write::kAnyVersion));
  ASSERT_TRUE(Restore().ok());
  EXPECT_TRUE(tree_.Peek(EraPath(Meta().meta.era)).has_value());
}

TEST_F(RestoreTest, TheFloorOfADocumentIsCertainAlsoMoreThanADayAhead) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.floor = kRestoreTime + 30 * kAnHour;
  facts.bounds = {{facts.floor + kAnHour}};
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->ignored.empty());
  EXPECT_EQ(report->floor, facts.floor + kAnHour + 3 * kWindow);
}

TEST_F(RestoreTest, IgnoresABoundOfAWrongClock) {
  const WallMs absurd = kRestoreTime + 30 * 24 * kAnHour;
  PutBound(absurd);
  const auto report = Restore({absurd});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->floor, kRestoreTime + 3 * kWindow + kSkew);
  EXPECT_EQ(report->retired.size(), 1u);
}

TEST_F(RestoreTest, RefusesAnOperatorWithAWrongClock) {
  for (const Milliseconds off : {kSkew + kAnHour, -kSkew - kAnHour}) {
    Make({});
    clock_.StepWall(off);  // the registry's clock
    const auto report = Restore();
    EXPECT_EQ(report.code(), Code::kInvalid);
    const std::string told = report.status().message();
    EXPECT_NE(told.find("(" + FormatRfc3339(kRestoreTime)), std::string::npos) << told;
    EXPECT_NE(told.find("registry " + FormatRfc3339(kRestoreTime + off)), std::string::npos)
        << told;
    EXPECT_EQ(Meta().meta.floor, WallMs());
    EXPECT_TRUE(Meta().meta.frozen);
    clock_.StepWall(-off);
    EXPECT_TRUE(Restore().ok());
  }
}

TEST_F(RestoreTest, UsesTheLaterOfBothClocks) {
  clock_.StepWall(kSkew / 2);
  EXPECT_EQ(Restore()->floor, kRestoreTime + kSkew / 2 + 3 * kWindow + kSkew);
}

TEST_F(RestoreTest, NamesIgnoredBounds) {
  const WallMs absurd = kRestoreTime + 30 * 24 * kAnHour;
  EXPECT_EQ(Restore({absurd, kRestoreTime})->ignored, std::vector{ReportedBound{absurd}});
}

// The holder may have issued ids up to the ignored bound, even if the tree has lost the record.
TEST_F(RestoreTest, RetiresTheSlotOfAnIgnoredReportedBound) {
  RestoreFacts facts = Facts();
  facts.bounds = {{kRestoreTime + 30 * 24 * kAnHour, MachineId(2)}, {kRestoreTime, MachineId(3)}};
  Write1(Write::Erase(SlotPath({0, 2}), Write::kAnyVersion));  // lost, and re-created
  EXPECT_EQ(RestoreBy(facts)->retired, std::vector{(Slot{0, 2})});
  EXPECT_TRUE(RecordOf(2).retired);
  EXPECT_FALSE(RecordOf(3).retired);
  EXPECT_TRUE(RestoreBy(facts)->retired.empty()) << "once is enough";
}

TEST_F(RestoreTest, TheOperatorCanRetireSlots) {
  RestoreFacts facts = Facts();
  facts.retired = {MachineId(1), MachineId(900)};
  EXPECT_EQ(RestoreBy(facts)->retired, std::vector{(Slot{0, 1})});
  EXPECT_TRUE(RecordOf(1).retired);
}

// A failed restore keeps the reason of the freeze if it names a ledger, because the gap may not
// lift this ledger far enough.
TEST_F(RestoreTest, RestoresTagsWhileTheClusterIsFrozen) {
  ClusterMeta frozen_before = Meta().meta;
  frozen_before.reason = LedgerWentBack("order", "it is at 101 and was at 5001");
  Write1(Write::Set(kMetaPath, FormatMeta(frozen_before), Write::kAnyVersion));
  RestoreFacts facts = Facts();
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    EXPECT_TRUE(Meta().meta.frozen);
    EXPECT_EQ(Meta().version, frozen.version);
    EXPECT_GT(frozen.meta.floor, kRestoreTime);
    return Invalid("no such store");
  };
  EXPECT_EQ(RestoreBy(facts).code(), Code::kInvalid);
  EXPECT_TRUE(Meta().meta.frozen);
  EXPECT_EQ(Meta().meta.reason, frozen_before.reason);
  facts.tags = [](const MetaAsRead&) { return Status(); };
  EXPECT_TRUE(RestoreBy(facts).ok());
  EXPECT_FALSE(Meta().meta.frozen);
}

TEST_F(RestoreTest, NamesAConcurrentCommandThatMakesAnyOfItsWritesFail) {
  for (const bool whole : {false, true}) {
    RestoreFacts facts = Facts();
    facts.tags = [&](const MetaAsRead&) -> Status {
      if (whole) {
        EXPECT_TRUE(Restore().ok());
      } else {
        AsOperator([&](BlockingCoordinator& registry) {
          EXPECT_TRUE(FreezeForRestore(registry, Facts(), entropy_).ok());
        });
      }
      return Conflict("/: the version differs");
    };
    AsOperator([&](BlockingCoordinator& registry) {
      const Status refused = RestoreCluster(registry, facts, entropy_).status();
      EXPECT_NE(refused.message().find("another command"), std::string::npos) << refused;
    });
  }
  RestoreFacts facts = Facts();
  facts.tags = [](const MetaAsRead&) { return Conflict("the tag's own"); };
  AsOperator([&](BlockingCoordinator& registry) {
    EXPECT_EQ(RestoreCluster(registry, facts, entropy_).status().message(), "the tag's own");
  });
}

TEST_F(RestoreTest, RecreatesAnUnreadableRootNodeFromTheGivenFacts) {
  const std::string uuid = Meta().meta.uuid;
  PutBound(kRestoreTime + kAnHour);
  Write1(Write::Set(kMetaPath, "rubbish", Write::kAnyVersion));
  RestoreFacts facts = Facts();
  const auto refused = RestoreBy(facts);
  EXPECT_EQ(refused.code(), Code::kCorrupt);
  EXPECT_NE(refused.status().message().find("--uuid"), std::string::npos) << refused.status();
  facts.uuid = uuid;
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->root_made);
  EXPECT_EQ(Meta().meta.uuid, uuid);
  EXPECT_EQ(Meta().meta.floor, kRestoreTime + kAnHour + 3 * kWindow) << "the records still exist";
}

TEST_F(RestoreTest, ReplacesAnUnusedClusterOnlyOnRequest) {
  RestoreFacts facts = Facts();
  facts.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  facts.replaces_unused = true;
  EXPECT_TRUE(RestoreBy(facts)->root_made);
  EXPECT_EQ(Meta().meta.uuid, facts.uuid);
  EXPECT_FALSE(RestoreBy(facts)->root_made) << "the root node exists now";
}

TEST_F(RestoreTest, CreatesNoRecordBeforeTheFloorAndAHigherVersionAreWritten) {
  PutBound(kRestoreTime + kAnHour);
  Write1(Write::Erase(SlotPath({0, 2}), Write::kAnyVersion));
  const auto damaged = tree_.Save();
  const int64_t version = Meta().version;
  bool finished = false;
  for (int interrupted_after = 0; !finished && interrupted_after < 100; ++interrupted_after) {
    tree_.Load(damaged);
    multis_left_ = interrupted_after;
    finished = Restore().ok();
    multis_left_.reset();
    if (tree_.Peek(SlotPath({0, 2})).has_value()) {
      EXPECT_GT(Meta().version, version) << interrupted_after;
      EXPECT_GE(Meta().meta.floor, kRestoreTime + kAnHour + 3 * kWindow) << interrupted_after;
    }
    EXPECT_EQ(Meta().meta.frozen, !finished && interrupted_after > 0) << interrupted_after;
    ASSERT_TRUE(Restore().ok()) << "again, after " << interrupted_after;
    EXPECT_FALSE(Meta().meta.frozen);
    EXPECT_TRUE(tree_.Peek(SlotPath({0, 2})).has_value());
  }
  EXPECT_TRUE(finished);
}

TEST_F(RestoreTest, RecreatesAWipedTreeUnderAFloor) {
  tree_.Wipe();
  bool finished = false;
  for (int interrupted_after = 0; !finished && interrupted_after < 100; ++interrupted_after) {
    tree_.Wipe();
    multis_left_ = interrupted_after;
    const auto report = Restore();
    multis_left_.reset();
    finished = report.ok();
    EXPECT_TRUE(!finished || report->root_made);
    if (tree_.Peek(SlotPath({0, 0})).has_value()) {
      EXPECT_GE(Meta().meta.floor, kRestoreTime + 3 * kWindow);
    }
  }
  EXPECT_TRUE(finished);
}

TEST_F(RestoreTest, ARecreatedClusterHasTheFirstTagAfterAnyInterruption) {
  bool finished = false;
  for (int interrupted_after = 0; !finished && interrupted_after < 100; ++interrupted_after) {
    tree_.Wipe();
    multis_left_ = interrupted_after;
    finished = Restore().ok();
    multis_left_.reset();
    if (!finished && tree_.Peek(kMetaPath).has_value()) {
      EXPECT_EQ(Meta().meta.reason, "the cluster is being made anew") << "version 0.1 compares it";
    }
    ASSERT_TRUE(Restore().ok()) << "again, after " << interrupted_after;
    const auto node = tree_.Peek(TagPath(kFirstTag));
    ASSERT_TRUE(node.has_value()) << interrupted_after;
    EXPECT_EQ(ReadTagNode(kFirstTag, node->data)->tag.strategy, "snowflake");
  }
  EXPECT_TRUE(finished);
}

TEST_F(RestoreTest, RecreatesTheFirstTagOnlyIfTheClusterIsLostAndTheTagIsNotRedefined) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  const TagDefinition tag{.name = std::string(kFirstTag), .strategy = "segment", .start = 7};
  AsOperator([&](BlockingCoordinator& registry) {
    facts.tags = [&](const MetaAsRead& frozen) { return TagStore(registry).Remake(tag, frozen); };
    ASSERT_TRUE(RestoreCluster(registry, facts, entropy_).ok());
  });
  EXPECT_EQ(ReadTagNode(kFirstTag, tree_.Peek(TagPath(kFirstTag))->data)->tag.start, 7);

  Write1(Write::Erase(TagPath(kFirstTag), Write::kAnyVersion));
  ASSERT_TRUE(Restore().ok());
  EXPECT_FALSE(tree_.Peek(TagPath(kFirstTag)).has_value());
}

TEST_F(RestoreTest, KeepsTheNumberOfWorkersUnlessMoreAreRequested) {
  Write1(Write::Erase(SlotPath({0, 2}), Write::kAnyVersion));
  for (const std::optional<uint32_t> asked : {std::optional<uint32_t>(), std::optional(6u)}) {
    AsOperator([&](BlockingCoordinator& registry) {
      RestoreFacts facts{.now = kRestoreTime};
      facts.workers = asked;
      const auto report = RestoreCluster(registry, facts, entropy_);
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->workers, asked.value_or(4u));
    });
    EXPECT_TRUE(tree_.Peek(SlotPath({0, 2})).has_value());
    EXPECT_EQ(tree_.Peek(SlotPath({0, 5})).has_value(), asked.has_value());
    EXPECT_FALSE(tree_.Peek(SlotPath({0, 6})).has_value());
  }
}

TEST_F(RestoreTest, CreatesMissingNodesOnlyUnderAFrozenRootNode) {
  Write1(Write::Erase(SlotPath({0, 2}), Write::kAnyVersion));
  MetaAsRead stands = Meta();
  AsOperator([&](BlockingCoordinator& registry) {
    EXPECT_EQ(MakeMissingNodes(registry, stands, 4u).code(), Code::kInvalid);
    // The root node has changed since it was read.
    stands.meta.frozen = true;
    --stands.version;
    EXPECT_EQ(MakeMissingNodes(registry, stands, 4u).code(), Code::kConflict);
  });
  EXPECT_FALSE(tree_.Peek(SlotPath({0, 2})).has_value());
}

TEST_F(RestoreTest, KeepsOrAdoptsTheDateOfTheFirstIds) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  facts.default_strategy = "snowflake";
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.ids_since, WallMs()) << "no date was given";
  facts.ids_since = kRestoreTime - kAnHour;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.ids_since, kRestoreTime - kAnHour);
  facts.ids_since = kRestoreTime;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.ids_since, kRestoreTime - kAnHour) << "it is never set later";
  facts.ids_since = {};
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(Meta().meta.ids_since, kRestoreTime - kAnHour);
}

}  // namespace
}  // namespace firn
