// What a restore keeps for a later run, and for machine ids whose records are lost.

#include "registry/operate/restore_memory.h"

#include <string>

#include <gtest/gtest.h>

#include "registry/cluster/reserved.h"
#include "tests/registry/operate/restore_fixture.h"

namespace firn {
namespace {

using RestoreMemoryTest = RestoreTest;

// Otherwise the audit calls them unused, and another system could get one that a server still uses.
TEST_F(RestoreMemoryTest, MarksMachineIdsOfKnownBoundsAsUsed) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.bounds = {{kRestored + 30 * 24 * kAnHour, MachineId(1)},
                  {kRestored - kAnHour, MachineId(2)},
                  {kRestored + kAnHour, MachineId(3)}};
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_TRUE(RecordOf(0).never_used());
  EXPECT_TRUE(RecordOf(1).retired);
  EXPECT_EQ(RecordOf(2).bound, kRestored - kAnHour);
  EXPECT_EQ(RecordOf(3).owner, kRestoredOwner);
  EXPECT_LE(RecordOf(3).bound, kRestored) << "the floor covers the rest: it can be claimed at once";
}

// A server that is cut off may hold a bound as far ahead as the largest window.
TEST_F(RestoreMemoryTest, RecordsTheLargestClaimWindow) {
  tree_.Wipe();
  RestoreFacts facts = Facts();
  facts.window = 9 * kWindow;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_GE(Meta().meta.floor, kRestored + 27 * kWindow);
  EXPECT_EQ(ParseClusterSettings(tree_.Peek(kSettingsPath)->data)->window, 9 * kWindow);
  facts.window = kWindow;
  ASSERT_TRUE(RestoreBy(facts).ok());
  EXPECT_EQ(ParseClusterSettings(tree_.Peek(kSettingsPath)->data)->window, 9 * kWindow);
}

TEST_F(RestoreMemoryTest, RemembersWhatAnInterruptedRunReplaces) {
  RestoreFacts facts = Facts();
  facts.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  facts.replaces_unused = true;
  facts.workers = 2;
  facts.memory.documents = {{"/backup.json", "c1", kRestored}};
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
      });
    }
    ASSERT_TRUE(RestoreBy(repeated).ok()) << interrupted_after;
    EXPECT_FALSE(tree_.Peek(kRestorePath)) << interrupted_after;
    EXPECT_TRUE(tree_.Peek(SlotPath({0, 1}))) << interrupted_after;
    EXPECT_FALSE(tree_.Peek(SlotPath({0, 2}))) << interrupted_after << ": beyond its size";
  }
  EXPECT_TRUE(finished);
}

// An earlier version knows no memory: what it leaves out must not count as done.
TEST_F(RestoreMemoryTest, ARunThatDrawsAnotherEraEndsTheMemory) {
  RestoreFacts facts = Facts();
  facts.memory.flags = {"--workers=4"};
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

}  // namespace
}  // namespace firn
