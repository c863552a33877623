#include <gtest/gtest.h>

#include "common/tag/tag_diff.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"
#include "tools/firn/restore/restore_tags.h"

namespace firn {
namespace {

// A cluster in memory with the tag `default`, which has no ledger, and a segment tag.
class LedgerLiftTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.workers = 1}, entropy_).ok());
    ASSERT_TRUE(TagStore(registry_).Create({.name = "order", .strategy = "segment"}).ok());
  }

  StoredTag Tag(std::string_view name) { return *TagStore(registry_).Read(name); }

  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{1};
};

TEST_F(LedgerLiftTest, LeavesNoTagAtAVersionThatCannotBeGuarded) {
  for (const std::string_view name : {kFirstTag, std::string_view("order")}) {
    const TagDefinition before = Tag(name).tag();
    tree_.SetVersion(TagPath(name), -1);
    Output output;
    ASSERT_TRUE(LiftLedgers(registry_, {}, output).ok());
    EXPECT_EQ(Tag(name).stat.version, 0) << name;
    EXPECT_EQ(WithLedgerOf(before, Tag(name).tag()), before);
    EXPECT_EQ(output.json.at("tags").size(), 1u) << "only one of them has a ledger";
  }
}

// The first run, which was interrupted, has removed the tags of the unused cluster.
TEST_F(LedgerLiftTest, ARepeatedRunKeepsTheTagsThatTheFirstHasRaised) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  const RestoreMemory memory{.replaced = root.meta.uuid};
  const auto remember = [&](const Nonce& era) {
    const std::string text = FormatRestoreMemory(memory, era);
    return std::vector{Write::Create(kRestorePath, text, Lifetime::kPersistent)};
  };
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_, remember);
  LedgerFacts facts{.replaced = true, .wanted_gap = 1'000};
  facts.backup.emplace();
  facts.backup->tags = {
      {.tag = {
           .name = "order", .strategy = "segment", .step = 50, .step_max = 400, .high = 5'001}}};
  Output output;
  ASSERT_TRUE(RestoreTags(registry_, root, {}, facts, output).ok());
  EXPECT_EQ(Tag("order").tag().NextBegin(), 6'001);
  ASSERT_TRUE(TagStore(registry_).Lift(Tag("order"), 9'001).ok());
  ASSERT_TRUE(RestoreTags(registry_, root, {}, facts, output).ok());
  EXPECT_EQ(Tag("order").tag().NextBegin(), 10'001);
}

TEST_F(LedgerLiftTest, ALateReportLiftsATagOnceAsFarAsAnEarlierOneWouldHave) {
  const LedgerFacts facts{.reports = {{.high = {{"order", 5'001}}}}, .wanted_gap = 1'000};
  TagDefinition tag = Tag("order").tag();
  tag.step = 50;
  tag.step_max = 400;
  ASSERT_TRUE(TagStore(registry_).Edit(Tag("order"), tag).ok());
  Output output;
  ASSERT_TRUE(LiftLedgers(registry_, facts, output).ok());
  ASSERT_EQ(Tag("order").tag().NextBegin(), 6'001);
  for (const auto& [reported, next] : {std::pair{5'001, 6'001}, {5'501, 6'501}, {5'501, 6'501}}) {
    ASSERT_TRUE(LiftAbove(registry_, {{.high = {{"order", reported}}}}, facts, output).ok());
    EXPECT_EQ(Tag("order").tag().NextBegin(), next) << reported;
  }
}

}  // namespace
}  // namespace firn
