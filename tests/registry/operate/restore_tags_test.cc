#include "registry/operate/restore/restore_tags.h"

#include <vector>

#include <gtest/gtest.h>

#include "common/tag/tag_diff.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// A cluster in memory with the tag `default`, which has no ledger, and a segment tag.
class RestoreTagsTest : public testing::Test {
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

TEST_F(RestoreTagsTest, LeavesNoTagAtAVersionThatCannotBeGuarded) {
  for (const std::string_view name : {kFirstTag, std::string_view("order")}) {
    const TagDefinition before = Tag(name).tag();
    tree_.SetVersion(TagPath(name), -1);
    std::vector<RestoredTag> changes;
    ASSERT_TRUE(LiftLedgers(registry_, {}, changes).ok());
    EXPECT_EQ(Tag(name).stat.version, 0) << name;
    EXPECT_EQ(WithLedgerOf(before, Tag(name).tag()), before);
    EXPECT_EQ(changes.size(), 1u) << "only one of them has a ledger";
  }
}

// The first run was interrupted after it had removed the tags of the unused cluster.
TEST_F(RestoreTagsTest, ARepeatedRunKeepsTheTagsThatTheFirstHasRaised) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  const RestoreMemory memory{.replaced = root.meta.uuid, .plan = "p"};
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
  ASSERT_TRUE(TagStore(registry_).Lift(Tag("order"), 77).ok()) << "of the unused cluster";
  const auto put = [&](std::string_view name) {
    const std::string plain = R"({"strategy":"segment","high":3})";
    return registry_.Multi({Write::Create(TagPath(name), plain, Lifetime::kPersistent)}).status;
  };
  ASSERT_TRUE(put("later").ok());
  std::vector<RestoredTag> changes;
  for (const int64_t next : {6'001, 7'001, 8'001}) {
    ASSERT_TRUE(RestoreTags(registry_, root, {}, facts, changes).ok());
    EXPECT_EQ(Tag("order").tag().NextBegin(), next);
  }
  // Another run knows an additional tag, which the unused cluster contains, too.
  ASSERT_TRUE(TagStore(registry_).Lift(Tag("order"), 9'001).ok());
  TagNode other = facts.backup->tags.front();
  other.tag.text = "n{id}";
  for (const char* name : {"later", "bill"}) {
    other.tag.name = name;
    facts.backup->tags.insert(facts.backup->tags.begin(), other);
  }
  ASSERT_TRUE(put("bill").ok());
  ASSERT_TRUE(RestoreTags(registry_, root, {}, facts, changes).ok());
  EXPECT_EQ(Tag("order").tag().NextBegin(), 10'001) << "raised by something else";
  for (const char* name : {"bill", "later"}) {
    EXPECT_EQ(Tag(name).tag().text, "n{id}") << name;
    EXPECT_EQ(Tag(name).tag().NextBegin(), 6'001) << name;
  }
}

// The operator mistyped the form of a lost tag. The run was interrupted after it had created the
// tag.
TEST_F(RestoreTagsTest, ARepeatedRunCorrectsTheFormOfATagThatTheFirstHasMade) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  const auto remember = [&](const Nonce& era) {
    const std::string text = FormatRestoreMemory({.plan = "p"}, era);
    return std::vector{Write::Create(kRestorePath, text, Lifetime::kPersistent)};
  };
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_, remember);
  const LedgerFacts facts{.reports = {{.high = {{"bill", 5'001}}}}, .wanted_gap = 1'000};
  GivenTag said{{.name = "bill", .strategy = "segment", .step = 50, .step_max = 400}};
  GivenTag existing{{.name = "order", .strategy = "segment"}};
  std::vector<RestoredTag> changes;
  const auto restored = [&](const GivenTag& tag) {
    return RestoreTags(registry_, root, {tag}, facts, changes);
  };
  for (const auto& [text, next] : {std::pair{"x{id}", 6'001}, {"n{id}", 7'001}, {"n{id}", 8'001}}) {
    said.tag.text = text;
    ASSERT_TRUE(restored(said).ok()) << text;
    EXPECT_EQ(Tag("bill").tag().text, text);
    EXPECT_EQ(Tag("bill").tag().NextBegin(), next);
  }
  ASSERT_TRUE(restored(existing).ok());
  existing.tag.text = "n{id}";
  EXPECT_EQ(restored(existing).code(), Code::kConflict) << "ids in the other form may exist";
  EXPECT_EQ(Tag("order").tag().text, "");

  // The number of the first form is not a number of the second form.
  said.tag = {.name = "day", .strategy = "dated"};
  ASSERT_TRUE(restored(said).ok());
  ASSERT_GT(Tag("day").tag().NextBegin(), 1'000'000);
  said.tag = {.name = "day", .strategy = "segment", .step = 50, .step_max = 400};
  ASSERT_TRUE(restored(said).ok());
  EXPECT_LT(Tag("day").tag().NextBegin(), 1'000'000);
}

// The first run was completed, and servers issued numbers above its gap. Then the registry lost the
// data of the last seconds, so it shows the unfinished restore again.
TEST_F(RestoreTagsTest, ARepeatedRunContinuesAboveNumbersIssuedAfterTheFirst) {
  LedgerFacts facts{.reports = {{.high = {{"order", 5'001}}}}, .wanted_gap = 1'000, .plan = "p"};
  TagDefinition tag = Tag("order").tag();
  tag.step = 50;
  tag.step_max = 400;
  ASSERT_TRUE(TagStore(registry_).Edit(Tag("order"), tag).ok());
  std::vector<RestoredTag> changes;
  const MemoryTree::Image during = [&] {
    EXPECT_TRUE(LiftLedgers(registry_, facts, changes).ok());
    return tree_.Save();
  }();
  const int64_t issued_to = Tag("order").tag().NextBegin() + 500;
  ASSERT_TRUE(TagStore(registry_).Lift(Tag("order"), issued_to).ok());
  tree_.Load(during, MemoryTree::Sessions::kStay);
  facts.reports.clear();
  ASSERT_TRUE(LiftLedgers(registry_, facts, changes).ok());
  EXPECT_GE(Tag("order").tag().NextBegin(), issued_to);
}

TEST_F(RestoreTagsTest, ALateReportLiftsATagOnceAsFarAsAnEarlierOneWouldHave) {
  const LedgerFacts facts{.reports = {{.high = {{"order", 5'001}}}}, .wanted_gap = 1'000};
  TagDefinition tag = Tag("order").tag();
  tag.step = 50;
  tag.step_max = 400;
  ASSERT_TRUE(TagStore(registry_).Edit(Tag("order"), tag).ok());
  std::vector<RestoredTag> changes;
  ASSERT_TRUE(LiftLedgers(registry_, facts, changes).ok());
  ASSERT_EQ(Tag("order").tag().NextBegin(), 6'001);
  for (const auto& [reported, next] : {std::pair{5'001, 6'001}, {5'501, 6'501}, {5'501, 6'501}}) {
    ASSERT_TRUE(LiftAbove(registry_, {{.high = {{"order", reported}}}}, facts, changes).ok());
    EXPECT_EQ(Tag("order").tag().NextBegin(), next) << reported;
  }
}

// An answer can give the tag the owner that the registry has lost.
TEST_F(RestoreTagsTest, OnlyAnAnswerGivesAUsedTagAnOwner) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_);
  for (const TagBuffer present : {TagBuffer::kDouble, TagBuffer::kNone, TagBuffer::kOwner}) {
    TagDefinition there{.name = "order", .strategy = "segment", .high = 501};
    there.buffer = present;
    TagDefinition other = there;
    other.buffer = present == TagBuffer::kOwner ? TagBuffer::kNone : TagBuffer::kOwner;
    const auto restored = [&](const std::vector<GivenTag>& said) {
      EXPECT_TRUE(registry_
                      .Multi({Write::Set(TagPath("order"), *WriteTagNode({.tag = there}),
                                         Write::kAnyVersion)})
                      .status.ok());
      LedgerFacts facts{.reports = {{{}, {.high = {{"order", 5'000}}}}}, .wanted_gap = 1'000};
      if (said.empty()) facts.backup.emplace().tags = {{.tag = other}};
      std::vector<RestoredTag> changes;
      const Status done = RestoreTags(registry_, root, said, facts, changes);
      EXPECT_TRUE(done.ok()) << done;
      EXPECT_GT(Tag("order").tag().high, 5'000);
      return Tag("order").tag().buffer;
    };
    for (const int64_t high : {0, 501, 9'001}) {
      other.high = high;
      EXPECT_EQ(restored({}), present) << high;
    }
    other.high = 0;
    if (present != TagBuffer::kOwner) {
      other.disabled = true;
      EXPECT_EQ(restored({{.tag = other}}), TagBuffer::kOwner);
      EXPECT_FALSE(Tag("order").tag().disabled) << "other settings stay";
      other.disabled = false;
    }
    there.high = 0;
    EXPECT_EQ(restored({}), present) << "no document shows numbers, so it may be the earlier one";
  }
}

// A server reports the tag, and the document is from before the edit of its text.
TEST_F(RestoreTagsTest, AUsedTagKeepsItsFormIfADocumentHasItUnusedInAnotherForm) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_);
  TagDefinition there{.name = "order", .strategy = "segment", .text = "n{id}", .high = 501};
  ASSERT_TRUE(
      registry_
          .Multi({Write::Set(TagPath("order"), *WriteTagNode({.tag = there}), Write::kAnyVersion)})
          .status.ok());
  LedgerFacts facts{.reports = {{{}, {.high = {{"order", 501}}}}}, .wanted_gap = 1'000};
  facts.backup.emplace().tags = {{.tag = {.name = "order", .strategy = "segment"}}};
  std::vector<RestoredTag> changes;
  const Status done = RestoreTags(registry_, root, {}, facts, changes);
  EXPECT_TRUE(done.ok()) << done;
  EXPECT_EQ(Tag("order").tag().text, "n{id}");
}

TEST_F(RestoreTagsTest, ALaterRunGivesATagThatAnEarlierOneHasMadeItsOwner) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_);
  TagDefinition tag{.name = "made", .strategy = "segment", .high = 5'001};
  for (const TagBuffer buffer : {TagBuffer::kDouble, TagBuffer::kOwner}) {
    tag.buffer = buffer;
    LedgerFacts facts{.wanted_gap = 1'000, .plan = "p"};
    facts.backup.emplace().tags = {{.tag = tag}};
    std::vector<RestoredTag> changes;
    const Status restored = RestoreTags(registry_, root, {}, facts, changes);
    ASSERT_TRUE(restored.ok()) << restored;
    EXPECT_EQ(Tag("made").tag().buffer, buffer);
    EXPECT_GE(Tag("made").tag().NextBegin(), 6'001);
    tag.high = 5'501;
  }
}

// An unused tag may get another strategy, and an older document still has its start.
TEST_F(RestoreTagsTest, MakesATagWithoutALedgerThatAnOlderDocumentHasWithAStart) {
  Backup older{.composed = true};
  older.root = {.uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff", .layout = "firn"};
  older.tags = {{.tag = {.name = "user", .strategy = "segment", .start = 1}}};
  Backup later = older;
  later.tags = {{.tag = {.name = "user", .strategy = "snowflake"}}};
  LedgerFacts facts{.backup = MergeBackups(older, later).value()};
  const Result<Backup> copied = ParseBackup(FormatBackup(*facts.backup));
  ASSERT_TRUE(copied.ok()) << copied.status();
  EXPECT_EQ(copied->tags.front().tag.start, std::nullopt);
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.frozen = true;
  root.version = *BeginEra(registry_, root.meta, root.version, entropy_);
  std::vector<RestoredTag> changes;
  const Status restored = RestoreTags(registry_, root, {}, facts, changes);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_EQ(Tag("user").tag().strategy, "snowflake");
}

}  // namespace
}  // namespace firn
