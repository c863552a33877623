// Tests the memory of an unfinished restore, and machine ids whose records are lost.

#include "registry/operate/restore_memory.h"

#include <string>

#include <gtest/gtest.h>

#include "registry/cluster/reserved.h"
#include "registry/operate/reserve.h"
#include "tests/registry/operate/restore_fixture.h"

namespace firn {
namespace {

using RestoreMemoryTest = RestoreTest;

// Otherwise the audit would report them as unused, and an operator could give another system a
// machine id that a server still uses.
TEST_F(RestoreMemoryTest, MarksMachineIdsOfKnownBoundsAsUsed) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.bounds = {{kRestoreTime + 30 * 24 * kAnHour, MachineId(1)},
                  {kRestoreTime - kAnHour, MachineId(2)},
                  {kRestoreTime + kAnHour, MachineId(3)}};
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_TRUE(RecordOf(0).never_used());
  EXPECT_TRUE(RecordOf(1).retired);
  EXPECT_EQ(RecordOf(2).bound, kRestoreTime - kAnHour);
  EXPECT_EQ(RecordOf(3).owner, kRestoredOwner);
  EXPECT_LE(RecordOf(3).bound, kRestoreTime)
      << "the floor covers the rest: it can be claimed at once";
  AsOperator([](BlockingCoordinator& registry) {
    EXPECT_EQ(ReserveSlots(registry, {{0, 2}}, "leaf").code(), Code::kConflict);
  });
}

// A disconnected server may hold a bound that is the largest window ahead.
TEST_F(RestoreMemoryTest, RecordsTheLargestClaimWindow) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.window = 9 * kWindow;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_GE(Meta().meta.floor, kRestoreTime + 27 * kWindow);
  EXPECT_EQ(ParseClusterSettings(tree_.Peek(kSettingsPath)->data)->window, 9 * kWindow);
  facts.window = kWindow;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(ParseClusterSettings(tree_.Peek(kSettingsPath)->data)->window, 9 * kWindow);
}

TEST_F(RestoreMemoryTest, ARepeatedRunReplacesTheSameClusterAsTheInterruptedOne) {
  RestoreFacts facts = Facts();
  facts.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  facts.replaces_unused = true;
  facts.workers = 2;
  facts.memory.documents = {{"/backup.json", "c1", kRestoreTime}};
  facts.memory.host = "db1";
  RestoreFacts repeated = facts;
  repeated.replaces_unused = false;
  const std::string unused = Meta().meta.uuid;
  const auto before = tree_.Save();
  bool finished = false;
  for (int interrupted_after = 0; !finished && interrupted_after < 100; ++interrupted_after) {
    tree_.Load(before);
    multis_left_ = interrupted_after;
    finished = RestoreBy(facts).ok();
    multis_left_.reset();
    if (Meta().meta.uuid == unused) continue;
    if (tree_.Peek(kRestorePath)) {
      AsOperator([&](BlockingCoordinator& registry) {
        const auto left = ReadRestoreMemory(registry, Meta().meta);
        ASSERT_TRUE(left.ok() && left->memory) << interrupted_after;
        EXPECT_EQ(left->memory->replaced, unused) << interrupted_after;
        EXPECT_EQ(left->memory->documents, facts.memory.documents) << interrupted_after;
        EXPECT_EQ(left->memory->host, "db1") << interrupted_after;
      });
    }
    ASSERT_TRUE(RestoreBy(repeated).ok()) << interrupted_after;
    EXPECT_FALSE(tree_.Peek(kRestorePath)) << interrupted_after;
    EXPECT_TRUE(tree_.Peek(SlotPath({0, 1}))) << interrupted_after;
    EXPECT_FALSE(tree_.Peek(SlotPath({0, 2}))) << interrupted_after << ": beyond its size";
  }
  EXPECT_TRUE(finished);
}

// A stopped holder's record was put back, and no running server knows how far ids are ahead.
TEST_F(RestoreMemoryTest, IncludesTheLeadOfEarlierErasAlsoAfterAnInterruption) {
  const Milliseconds lead = Restore()->floor - kRestoreTime;
  clock_.StepWall(20 * 24 * kAnHour);
  const auto before = tree_.Save();
  RestoreFacts later = Facts();
  later.now = clock_.Wall();
  const WallMs wanted = later.now + lead + 3 * kWindow;
  EXPECT_EQ(RestoreBy(later)->floor, wanted);
  EXPECT_EQ(Meta().meta.floor, wanted);
  for (int writes = 1; writes < 6; ++writes) {
    tree_.Load(before);
    multis_left_ = writes;
    EXPECT_FALSE(RestoreBy(later).ok()) << writes;
    multis_left_.reset();
    EXPECT_GE(RestoreBy(later)->floor, wanted) << writes;
  }

  // A run whose era begins by a wrong clock of the registry is refused, and changes no lead.
  tree_.Load(before);
  clock_.StepWall(-300 * 24 * kAnHour);
  EXPECT_EQ(RestoreBy(later).code(), Code::kInvalid);
  clock_.StepWall(300 * 24 * kAnHour);
  EXPECT_EQ(RestoreBy(later)->floor, wanted);
}

TEST_F(RestoreMemoryTest, IncludesALeadOfDaysOrWeeks) {
  for (const Milliseconds lead : {30 * kAnHour, 40 * 24 * kAnHour}) {
    Make(clock_.Wall() + lead);
    clock_.StepWall(20 * 24 * kAnHour);
    RestoreFacts later = Facts();
    later.now = clock_.Wall();
    const auto before = tree_.Save();
    EXPECT_EQ(RestoreBy(later)->floor, later.now + lead + 3 * kWindow);
    tree_.Load(before);
    Write1(Write::Erase(EraPath(Meta().meta.era), Write::kAnyVersion));
    EXPECT_EQ(RestoreBy(later)->floor, later.now + lead + 3 * kWindow)
        << "the root node shows it, too";
  }
}

// A process that begins an era without this memory may have omitted parts of it.
TEST_F(RestoreMemoryTest, ARunThatDrawsAnotherEraEndsTheMemory) {
  RestoreFacts facts = Facts();
  facts.memory.flags = {"--set=workers=4"};
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
    ASSERT_TRUE(ReadRestoreMemory(registry, Meta().meta)->memory);
    MetaAsRead root = Meta();
    ASSERT_TRUE(BeginEra(registry, root.meta, root.version, entropy_).ok());
    EXPECT_FALSE(ReadRestoreMemory(registry, Meta().meta)->memory);
  });
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_FALSE(tree_.Peek(kRestorePath));
}

TEST_F(RestoreMemoryTest, JoinsTheAnswersOfTwoRunsAndOnlyRaises) {
  const RestoreMemory first{.flags = {"--set=floor=7,8", "--set=retire=5", "--set=workers=4",
                                      "--tag_gap=9", "--ids_since=2026-02-01T00:00:00.000Z",
                                      "--layout=firn", "--set=order.high=900", "--set=bill.start=7",
                                      "--set=user.step=2"}};
  const RestoreMemory second{.flags = {"--set=retire=6,5", "--set=workers=3", "--tag_gap=10",
                                       "--ids_since=2026-01-01T00:00:00.000Z", "--layout=twitter",
                                       "--set=reserve=1=x", "--set=order.high=1000",
                                       "--set=bill.start=6", "--set=user.step=4"}};
  RestoreMemory joined = second;
  joined.Join(first);
  const RestoreMemory expected{.flags = {"--set=retire=6,5", "--set=workers=4", "--tag_gap=10",
                                         "--ids_since=2026-01-01T00:00:00.000Z", "--layout=twitter",
                                         "--set=reserve=1=x", "--set=order.high=1000",
                                         "--set=bill.start=7", "--set=user.step=4",
                                         "--set=floor=7,8"}};
  EXPECT_EQ(joined, expected);
  EXPECT_TRUE(second.Lacks(first));
  RestoreMemory reserved{.flags = {"--set=reserve=1=x"}};
  RestoreMemory none{.flags = {"--set=reserve=none"}};
  reserved.Join(none);
  none.Join(reserved);
  EXPECT_EQ(reserved.flags, std::vector<std::string>{"--set=reserve=1=x"});
  EXPECT_EQ(none.flags, reserved.flags);
  EXPECT_FALSE(joined.Lacks(first));
  EXPECT_FALSE(joined.Lacks(second));
}

// A mistyped field, or one that the new strategy lacks, must not remain.
TEST_F(RestoreMemoryTest, ADefinitionOfATagReplacesTheEarlierOneAsAWhole) {
  const RestoreMemory first{.flags = {"--set=day.strategy=segment", "--set=day.text=x{id}",
                                      "--set=day.start=7", "--set=day.high=9", "--set=a.step=5",
                                      "--set=day.obfuscate.width=8"}};
  RestoreMemory number{.flags = {"--set=day.high=10"}};
  number.Join(first);
  EXPECT_EQ(number.flags.size(), first.flags.size()) << "no definition";
  RestoreMemory joined{.flags = {"--set=day.strategy=dated"}};
  EXPECT_TRUE(joined.Lacks(first));
  joined.Join(first);
  EXPECT_EQ(joined.flags, (std::vector<std::string>{"--set=day.strategy=dated", "--set=day.start=7",
                                                    "--set=day.high=9", "--set=a.step=5"}));
  EXPECT_FALSE(joined.Lacks(first));
  RestoreMemory snowflake{.flags = {"--set=day.strategy=snowflake"}};
  snowflake.Join(first);
  EXPECT_EQ(std::ranges::count(snowflake.flags, "--set=day.start=7"), 0) << "it has no numbers";
}

// Two operators restore at the same time. The second has read the cluster before the first froze
// it.
TEST_F(RestoreMemoryTest, ARunThatLacksAnswersOfAnEarlierOneIsRefused) {
  RestoreFacts facts = Facts();
  facts.memory.flags = {"--set=floor=7"};
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
    const Node before = *tree_.Peek(kMetaPath);
    EXPECT_EQ(RestoreCluster(registry, Facts(), entropy_).status().code(), Code::kConflict);
    EXPECT_EQ(tree_.Peek(kMetaPath)->data, before.data);
  });
  EXPECT_TRUE(RestoreBy(facts).ok());
}

// The second operator has an additional backup, and the first operator's run waits for reports.
TEST_F(RestoreMemoryTest, ARunThatLacksADocumentOfALaterOneIsRefused) {
  RestoreFacts first = Facts(), second = Facts();
  first.memory.documents = {{"/old.json", "c1", kRestoreTime}};
  second.memory.documents = {{"/old.json", "c1", kRestoreTime}, {"/new.json", "c2", kRestoreTime}};
  AsOperator([&](BlockingCoordinator& registry) {
    ASSERT_TRUE(FreezeForRestore(registry, first, entropy_).ok());
    ASSERT_TRUE(FreezeForRestore(registry, second, entropy_).ok());
    EXPECT_EQ(RestoreCluster(registry, first, entropy_).status().code(), Code::kConflict);
    EXPECT_TRUE(Meta().meta.frozen);
  });
  EXPECT_TRUE(RestoreBy(second).ok());
}

TEST_F(RestoreMemoryTest, ForgetsDocumentsWhoseFilesAreLost) {
  RestoreFacts facts = Facts();
  facts.memory.documents = {{"/lost.json", "c1", kRestoreTime}};
  facts.memory.flags = {"--set=retire=5"};
  AsOperator([&](BlockingCoordinator& registry) {
    const auto left = [&] { return *ReadRestoreMemory(registry, Meta().meta)->memory; };
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
    facts.memory.documents = {{"/other.json", "c2", kRestoreTime}};
    EXPECT_EQ(FreezeForRestore(registry, facts, entropy_).code(), Code::kConflict);
    EXPECT_EQ(left().documents.size(), 1u);
    facts.forgets_documents = true;
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
    EXPECT_EQ(left().documents, facts.memory.documents);
    EXPECT_EQ(left().flags, facts.memory.flags);
    facts.memory = {};
    facts.memory.flags = {"--set=retire=5"};
    ASSERT_TRUE(FreezeForRestore(registry, facts, entropy_).ok());
    EXPECT_TRUE(left().documents.empty());
  });
}

// A server that has just connected reports after the facts were gathered.
TEST_F(RestoreMemoryTest, UsesReportsThatArriveBeforeTheUnfreeze) {
  RestoreFacts facts = Facts();
  facts.bounds = {{kRestoreTime + kAnHour, MachineId(0)}};
  const std::vector<ProviderReport> late{
      {.machine = MachineId(0), .bound = kRestoreTime + kAnHour},
      {.machine = MachineId(1),
       .bound = kRestoreTime + 5 * kAnHour,
       .window = 2 * kWindow,
       .clock_skew_ms = 7'200'000},
      {.machine = MachineId(2), .bound = kRestoreTime + 30 * 24 * kAnHour}};
  facts.last_reports = [&](const MetaAsRead&) -> Result<std::vector<ProviderReport>> {
    EXPECT_TRUE(Meta().meta.frozen);
    EXPECT_LT(Meta().meta.floor, kRestoreTime + 2 * kAnHour);
    return late;
  };
  const auto report = RestoreBy(facts);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->floor, kRestoreTime + 5 * kAnHour + 6 * kWindow);
  EXPECT_EQ(Meta().meta.floor, report->floor);
  EXPECT_EQ(ParseClusterSettings(tree_.Peek(kSettingsPath)->data)->window, 2 * kWindow);
  EXPECT_EQ(report->ignored.size(), 1u);
  EXPECT_EQ(RecordOf(1).owner, kRestoredOwner);
  EXPECT_TRUE(RecordOf(2).retired);
}

TEST_F(RestoreMemoryTest, UnfreezesNoClusterThatAnotherProcessHasChanged) {
  RestoreFacts facts = Facts();
  facts.memory.flags = {"--set=retire=3"};
  const std::pair<const char*, Write> changes[] = {
      {kMetaPath, Write::Set(kMetaPath, "", Write::kAnyVersion)},
      {kRestorePath, Write::Set(kRestorePath, "", Write::kAnyVersion)}};
  for (const auto& [what, change] : changes) {
    Make({});
    facts.last_reports = [&](const MetaAsRead&) -> Result<std::vector<ProviderReport>> {
      Write again = change;
      again.data = tree_.Peek(again.path)->data;
      Write1(again);
      return std::vector<ProviderReport>();
    };
    EXPECT_EQ(RestoreBy(facts).status().code(), Code::kConflict) << what;
    EXPECT_TRUE(Meta().meta.frozen) << what;
    facts.last_reports = nullptr;
    EXPECT_TRUE(RestoreBy(facts).ok()) << what;
    EXPECT_FALSE(tree_.Peek(kRestorePath)) << what;
  }
}

}  // namespace
}  // namespace firn
