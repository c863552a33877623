#include "registry/operate/restore_policy.h"

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/claim/claim_options.h"
#include "tests/registry/operate/restored_cluster.h"

namespace firn {
namespace {

TEST(RestorePolicyTest, ACompletedRestoreCoversTheFloor) {
  EXPECT_TRUE(RestoredCluster().Covers());
}

TEST(RestorePolicyTest, EachNewFactRequiresAnotherRestore) {
  const WallMs absurd = kRestoredAt + kPoisonAhead + Milliseconds(3'600'000);
  const std::vector<std::pair<const char*, std::function<void(RestoredCluster&)>>> cases{
      {"no root node", [](RestoredCluster& it) { it.audit.meta.reset(); }},
      {"frozen", [](RestoredCluster& it) { it.audit.meta->frozen = true; }},
      {"a loss",
       [](RestoredCluster& it) {
         it.audit.findings.push_back({Urgency::kData, "a node is missing", {}, /*restore=*/true});
       }},
      {"no server that would notice a loss",
       [](RestoredCluster& it) { it.audit.providers.clear(); }},
      {"only a server of another cluster",
       [](RestoredCluster& it) { it.audit.providers[0].report.cluster = "other"; }},
      {"another cluster", [](RestoredCluster& it) { it.facts.replaces_unused = true; }},
      {"an earlier date of ids", [](RestoredCluster& it) { it.facts.ids_since = WallMs(1); }},
      {"a restore long ago",
       [](RestoredCluster& it) { it.facts.now = kRestoredAt + 4 * kRestoreWindow; }},
      {"a floor below the margin", [](RestoredCluster& it) { it.audit.meta->floor = kRestoredAt; }},
      {"a bound above the floor",
       [](RestoredCluster& it) {
         it.facts.bounds.push_back({it.audit.meta->floor + Milliseconds(1)});
       }},
      {"a bound of leases, whose machine ids are not reported",
       [](RestoredCluster& it) {
         AddReport({.lease_bound = it.audit.meta->floor + Milliseconds(1)}, it.facts);
       }},
      {"an implausible bound without a machine id",
       [&](RestoredCluster& it) { it.facts.bounds.push_back({absurd}); }},
      {"an implausible bound of a machine id that is not retired",
       [&](RestoredCluster& it) {
         it.facts.bounds.push_back({absurd, MachineId(1)});
       }},
      {"a machine id to retire", [](RestoredCluster& it) { it.facts.retired = {MachineId(1)}; }},
      {"a machine id to reserve",
       [](RestoredCluster& it) {
         it.facts.reserved = {{MachineId(0), MachineId(1), "old"}};
       }},
      {"more machine ids", [](RestoredCluster& it) { it.facts.workers = 3; }},
      {"a larger skew", [](RestoredCluster& it) { it.facts.skew_max = 4 * kRestoreWindow; }},
  };
  for (const auto& [what, change] : cases) {
    RestoredCluster restored;
    change(restored);
    EXPECT_FALSE(restored.Covers()) << what;
  }
}

TEST(RestorePolicyTest, FactsThatTheRestoreIncludedRequireNoOther) {
  RestoredCluster restored;
  const WallMs absurd = kRestoredAt + kPoisonAhead + Milliseconds(3'600'000);
  restored.facts.bounds = {{restored.audit.meta->floor}, {absurd, MachineId(0)}};
  restored.facts.retired = {MachineId(0)};
  restored.facts.reserved = {{MachineId(0), MachineId(0), "old"}};
  restored.facts.lease_share = 20;  // firn set changes it
  restored.facts.workers = 2;
  EXPECT_TRUE(restored.Covers());
}

TEST(RestorePolicyTest, AnAnswerIsCoveredByATagOfItsFormAboveItsNumber) {
  const TagListing listing{.tags = {TagInRegistry(LedgerTag("order", 5'001))}, .faults = {}};
  TagDefinition said = LedgerTag("order", 0);
  said.start = 5'001;
  EXPECT_TRUE(TagsCover(listing, {.answers = {.tags = {{said}}}}));
  said.start = 5'002;
  EXPECT_FALSE(TagsCover(listing, {.answers = {.tags = {{said}}}})) << "the ledger is lower";
  said.start = 1;
  said.text = "{id:09}";
  EXPECT_FALSE(TagsCover(listing, {.answers = {.tags = {{said}}}})) << "the form differs";
  EXPECT_TRUE(TagsCover(listing, {.answers = {.tags = {{said, /*defined=*/false}}}}))
      << "only a number";
  EXPECT_FALSE(TagsCover(listing, {.answers = {.tags = {{LedgerTag("other", 0)}}}}))
      << "the tag is missing";
  EXPECT_TRUE(TagsCover(listing, {.answers = {.highs = {.high = {{"order", 5'001}}}}}));
  EXPECT_FALSE(TagsCover(listing, {.answers = {.highs = {.high = {{"order", 5'002}}}}}));
}

TEST(RestorePolicyTest, ADeletedTagCoversTheBackupUnlessNumbersOfItAreKnown) {
  const TagListing listing{.tags = {}, .faults = {}, .deleted = {"order"}};
  LedgerFacts facts;
  facts.backup.emplace();
  facts.backup->tags = {SavedTag(LedgerTag("order", 0))};
  EXPECT_TRUE(TagsCover(listing, {.ledgers = facts}));
  facts.reports = {{.high = {{"order", 0}, {"other", 7}}, .high_others = 5}};
  EXPECT_TRUE(TagsCover(listing, {.ledgers = facts})) << "no report names it";
  facts.reports[0].high["order"] = 5'001;
  EXPECT_FALSE(TagsCover(listing, {.ledgers = facts})) << "a server has seen numbers";
  facts.reports.clear();
  facts.backup->tags = {SavedTag(LedgerTag("order", 5'001))};
  EXPECT_FALSE(TagsCover(listing, {.ledgers = facts})) << "the backup has numbers";
}

TEST(RestorePolicyTest, ABackupIsCoveredByTagsLiftedAboveItByTheGap) {
  const auto covers = [](TagListing listing) {
    LedgerFacts facts{.wanted_gap = 1'000};
    facts.backup.emplace();
    facts.backup->tags = {SavedTag(LedgerTag("order", 5'001))};
    return TagsCover(listing, {.ledgers = std::move(facts)});
  };
  EXPECT_FALSE(covers({})) << "the tag is missing";
  EXPECT_FALSE(covers({.tags = {TagInRegistry(LedgerTag("order", 6'000))}, .faults = {}}));
  EXPECT_TRUE(covers({.tags = {TagInRegistry(LedgerTag("order", 6'001))}, .faults = {}}));

  TagDefinition owned = LedgerTag("order", 5'001);
  owned.buffer = TagBuffer::kOwner;
  LedgerFacts edited{.wanted_gap = 1'000};
  edited.backup.emplace().tags = {SavedTag(owned)};
  owned.high = 6'001;
  EXPECT_TRUE(TagsCover({.tags = {TagInRegistry(owned)}, .faults = {}}, {.ledgers = edited}));
  EXPECT_FALSE(TagsCover({.tags = {TagInRegistry(LedgerTag("order", 6'001))}, .faults = {}},
                         {.ledgers = edited}))
      << "the registry lost the edit";
  RestoreCall answered{.ledgers = edited};
  answered.answers.tags = {{LedgerTag("order", 0)}};
  EXPECT_TRUE(
      TagsCover({.tags = {TagInRegistry(LedgerTag("order", 6'001))}, .faults = {}}, answered))
      << "an answer says that there was none";

  // The operator gave the number above a later report, because the gap left no room.
  LedgerFacts given{.wanted_gap = 1'000, .starts = {{"order", 5'500}}};
  given.backup.emplace();
  given.backup->tags = {SavedTag(LedgerTag("order", 5'001))};
  EXPECT_TRUE(TagsCover({.tags = {TagInRegistry(LedgerTag("order", 5'500))}, .faults = {}},
                        {.ledgers = given}));
}

TEST(RestorePolicyTest, TheHighestOfReportsBackupAndRegistryIsKnown) {
  LedgerFacts facts{.wanted_gap = 1'000};
  EXPECT_EQ(KnownOf("order", facts), std::nullopt);
  facts.reports = {{.high = {{"order", 300}}}, {.high_others = 200}};
  EXPECT_EQ(KnownOf("order", facts), 300);
  EXPECT_EQ(KnownOf("other", facts), 200) << "the limit of a report without room for every tag";
  facts.backup.emplace();
  facts.backup->tags = {SavedTag(LedgerTag("order", 5'001))};
  EXPECT_EQ(ReportedOf("order", facts.reports), 300);
  EXPECT_EQ(KnownOf("order", facts), 5'001);
  EXPECT_EQ(HighestKnown(LedgerTag("order", 7'000), facts), 7'000);
  EXPECT_EQ(LiftedTo(LedgerTag("order", 100), 5'001, facts, kRestoredAt), 6'001);
  facts.documents = {*facts.backup, *facts.backup};
  facts.documents.front().tags.front().tag.step_max = 4'000;
  EXPECT_EQ(LiftedTo(LedgerTag("order", 100), 5'001, facts, kRestoredAt), 13'001)
      << "the largest ranges in any document";
}

// The restore was completed and servers issued these numbers. Then the registry was rolled back to
// a state without the tags.
TEST(RestorePolicyTest, TheNextNumbersOfAnUnfinishedRestoreMayBeIssued) {
  Audit audit = RestoredCluster().audit;
  EXPECT_TRUE(UsedStarts(audit).high.empty());
  audit.unfinished =
      RestoreMemory{.flags = {"--set=order.start=5001", "--set=bill.high=7"}, .plan = "earlier"};
  const ProviderReport used = UsedStarts(audit);
  EXPECT_EQ(used.high, (std::map<std::string, int64_t>{{"order", 5'002}}));

  // A tag whose gap would leave no numbers continues at a start above these numbers.
  TagDefinition narrow = LedgerTag("order", 0);
  narrow.plugins = {"obfuscate"};
  narrow.obfuscate_width = 4;
  LedgerFacts facts{.reports = {used}, .wanted_gap = 9'000, .starts = {{"order", 5'001}}};
  EXPECT_EQ(LiftedTo(LedgerTag("order", 0), *KnownOf("order", facts), facts), 14'002);
  EXPECT_EQ(LiftedTo(narrow, *KnownOf("order", facts), facts), 14'002) << "so the restore asks";
  facts.starts["order"] = 5'002;
  EXPECT_EQ(LiftedTo(narrow, *KnownOf("order", facts), facts), 5'002);
}

TEST(RestorePolicyTest, ADatedTagWithoutRoomForTheGapContinuesAtTheGivenNumber) {
  const TagDefinition bill{.name = "bill", .strategy = "dated", .high = 20'250'615'905'001};
  LedgerFacts facts;
  EXPECT_EQ(LiftedTo(bill, 20'250'615'800'001, facts, kRestoredAt), 20'250'615'900'001);
  EXPECT_EQ(LiftedTo(bill, bill.high, facts, kRestoredAt), 20'250'616'000'000) << "so it asks";
  facts.starts = {{"bill", bill.high}};
  EXPECT_EQ(LiftedTo(bill, bill.high, facts, kRestoredAt), bill.high);
}

TEST(RestorePolicyTest, ABackupAddsItsBoundsAndReplacesNoOtherFact) {
  Backup backup;
  backup.root.workers = 1;
  backup.root.ids_since = WallMs(5);
  backup.root.lease_share = 10;
  backup.root.retired = {MachineId(3)};
  backup.bounds = {{MachineId(0), kRestoredAt},
                   {MachineId(1), kRestoredAt + Milliseconds(1)},
                   {MachineId(2), kRestoredAt + 2 * kPoisonAhead}};
  const RestoredCluster restored;
  backup.root.floor = kRestoredAt - Milliseconds(1);
  backup.reached = {kRestoredAt - Milliseconds(2), kRestoredAt + 3 * kPoisonAhead};
  RestoreFacts facts = restored.facts;
  AddDocuments({.documents = {backup}, .backup = backup}, restored.audit, facts);
  EXPECT_EQ(facts.workers, 2u) << "the cluster has more than the backup";
  EXPECT_EQ(facts.ids_since, WallMs(5));
  EXPECT_EQ(facts.lease_share, 10);
  EXPECT_EQ(facts.retired, std::vector{MachineId(3)});
  const std::vector<ReportedBound> bounds{{kRestoredAt, MachineId(0)},
                                          {kRestoredAt + Milliseconds(1), MachineId(1)},
                                          {kRestoredAt + 2 * kPoisonAhead, MachineId(2)},
                                          {kRestoredAt - Milliseconds(2)},
                                          {kRestoredAt + 3 * kPoisonAhead},
                                          {kRestoredAt + Milliseconds(1)}};
  EXPECT_EQ(facts.bounds, bounds);
  EXPECT_EQ(facts.floor, backup.root.floor);

  RestoreFacts said = restored.facts;
  said.workers = 7;
  said.ids_since = WallMs(9);
  said.lease_share = 20;
  AddDocuments({.documents = {backup}, .backup = backup}, restored.audit, said);
  EXPECT_EQ(said.workers, 7u);
  EXPECT_EQ(said.ids_since, WallMs(9));
  EXPECT_EQ(said.lease_share, 20);
}

// The memory of a restore has no room for the fields of all tags.
TEST(RestorePolicyTest, ManyTagsWithDifferentDefinitionsGetOneAnswer) {
  RestoreCall call{.is_lost = true};
  Backup& backup = call.ledgers.backup.emplace();
  const auto asked = [&] {
    Questions open;
    AskOfDefinitions({}, call, open);
    return open;
  };
  for (int i = 10; i < 30; ++i) {
    backup.tags.push_back(SavedTag(LedgerTag("t" + std::to_string(i), 101)));
  }
  backup.other_tags = backup.tags;
  for (TagNode& node : backup.other_tags) node.tag.step = 70;
  EXPECT_EQ(asked().size(), 20u);
  backup.tags.push_back(SavedTag(LedgerTag("u", 101)));
  backup.other_tags.push_back(SavedTag(LedgerTag("u", 101)));
  backup.other_tags.back().tag.step = 70;
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(asked().front().answers, std::vector<std::string>{"definitions=any"});
  call.answers = ParseAnswers({"definitions=any"}).value();
  EXPECT_TRUE(asked().empty());
  backup.other_tags.back().tag.text = "n{id}";
  EXPECT_EQ(asked().size(), 1u) << "another form";
}

}  // namespace
}  // namespace firn
