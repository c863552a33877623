#include "registry/operate/restore_policy.h"

#include <functional>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

constexpr char kRestoredUuid[] = "5f1c2f9e-7d8a-4a53-9d9a-1b6f1a2b3c4d";
constexpr WallMs kRestoredAt{1'750'000'000'000};
constexpr Milliseconds kRestoreWindow{600'000};

TagDefinition LedgerTag(const std::string& name, int64_t high) {
  return {.name = name, .strategy = "segment", .step = 50, .step_max = 400, .high = high};
}

TagNode SavedTag(TagDefinition tag) { return {.tag = std::move(tag)}; }
StoredTag TagInRegistry(TagDefinition tag) {
  return {.node = SavedTag(std::move(tag)), .stat = {}};
}

AuditedSlot AuditedSlotOf(uint32_t machine, bool retired) {
  AuditedSlot slot;
  slot.slot = {0, machine};
  slot.machine = MachineId(machine);
  slot.record.retired = retired;
  return slot;
}

// A cluster that was restored a minute ago: its floor is as high as a restore sets it. Machine id 0
// is retired, 1 is not.
struct RestoredCluster {
  RestoredCluster() {
    audit.meta.emplace();
    audit.meta->uuid = kRestoredUuid;
    audit.meta->layout = "firn";
    audit.meta->floor = kRestoredAt + 3 * kRestoreWindow + Milliseconds(10'000);
    audit.meta_set_at = kRestoredAt;
    audit.slots = {AuditedSlotOf(0, true), AuditedSlotOf(1, false)};
  }

  bool Covers() const { return FloorCovers(audit, facts); }

  Audit audit;
  RestoreFacts facts{.now = kRestoredAt + Milliseconds(60'000), .window = kRestoreWindow};
};

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

TEST(RestorePolicyTest, AnArgumentIsCoveredByATagOfItsFormAboveItsNumber) {
  const TagListing listing{.tags = {TagInRegistry(LedgerTag("order", 5'001))}, .faults = {}};
  TagDefinition said = LedgerTag("order", 0);
  said.start = 5'001;
  EXPECT_TRUE(TagsCover(listing, {.tags = {{said}}}));
  said.start = 5'002;
  EXPECT_FALSE(TagsCover(listing, {.tags = {{said}}})) << "the ledger is lower";
  said.start = 1;
  said.text = "{id:09}";
  EXPECT_FALSE(TagsCover(listing, {.tags = {{said}}})) << "the form differs";
  EXPECT_TRUE(TagsCover(listing, {.tags = {{said, /*defined=*/false}}})) << "only a number";
  EXPECT_FALSE(TagsCover(listing, {.tags = {{LedgerTag("other", 0)}}})) << "the tag is missing";
  EXPECT_TRUE(TagsCover(listing, {.highs = {.high = {{"order", 5'001}}}}));
  EXPECT_FALSE(TagsCover(listing, {.highs = {.high = {{"order", 5'002}}}}));
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
}

TEST(RestorePolicyTest, RefusesToLeaveALostTagOutAndPrintsTheCommandThatAddsIt) {
  Audit audit = RestoredCluster().audit;
  audit.lost_tags = {{"order", 5'001}, {"quiet", 0}};
  const RestoreArguments place{.registry = "dir:///x", .auth_file = "/etc/zk"};
  const Status refused = CheckFactsSuffice(audit, {}, place);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(), HasSubstr("the node of tag order is lost"));
  EXPECT_THAT(refused.message(), HasSubstr(std::string("firn restore --registry=dir:///x "
                                                       "--registry_auth_file=/etc/zk --uuid=") +
                                           kRestoredUuid + " --layout=firn "));
  EXPECT_THAT(refused.message(), HasSubstr(" order=2000"));

  RestoreCall with_argument{.tags = {{LedgerTag("order", 0)}}};
  EXPECT_TRUE(CheckFactsSuffice(audit, with_argument, place).ok());
  RestoreCall with_backup;
  with_backup.ledgers.backup.emplace();
  with_backup.ledgers.backup->tags = {SavedTag(LedgerTag("order", 1))};
  EXPECT_TRUE(CheckFactsSuffice(audit, with_backup, place).ok());
}

// The registry remembers flags and arguments, but neither a file nor what is too long for it.
TEST(RestorePolicyTest, ContinuesAnUnfinishedRestoreOnlyWithWhatItUsed) {
  Audit audit = RestoredCluster().audit;
  audit.findings.push_back({Urgency::kData, "a node is missing", {}, /*restore=*/true});
  audit.unfinished =
      RestoreMemory{.documents = {{"/a b.json", "c1", kRestoredAt}}, .flags = {"--retire=5"}};
  const RestoreArguments place{.registry = "dir:///x"};
  const auto told = [&](const RestoreMemory& ran) {
    return CheckContinues(audit, ran, place).message();
  };
  EXPECT_THAT(told({}), HasSubstr("\nfirn restore --registry=dir:///x '--from=/a b.json'"));
  EXPECT_EQ(told({.documents = {{"/c", "c1", WallMs(1)}}}), "") << "the same document";
  EXPECT_NE(told({.documents = {{"/c", "c2", kRestoredAt + Milliseconds(1)}}}), "")
      << "the registry may have gone back before a later one was taken";
  audit.unfinished->documents.push_back({"/older", "c3", WallMs(1)});
  EXPECT_THAT(told({}), HasSubstr("'--from=/a b.json,/older'"));

  const RestoreMemory ran{.flags = {"--retire=5"}, .tags = {"order=7"}};
  audit.unfinished = RestoreMemory{.unstored = ran.Digest()};
  EXPECT_THAT(told({}), HasSubstr("word for word"));
  EXPECT_EQ(told(ran), "");
}

TEST(RestorePolicyTest, RefusesToLiftALedgerThatWentBackWithoutItsNumber) {
  Audit audit = RestoredCluster().audit;
  audit.meta->frozen = true;
  audit.meta->reason = LedgerWentBack("a b", "it is at 101 and was at 5001");
  const RestoreArguments place{.registry = "dir:///x"};
  const Status refused = CheckFactsSuffice(audit, {}, place);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(),
              HasSubstr("\nfirn restore --registry=dir:///x --tag_high=a+b=NUMBER"));

  RestoreCall call;
  call.ledgers.reports.push_back({.high = {{"a b", 5'001}}});
  EXPECT_TRUE(CheckFactsSuffice(audit, call, place).ok()) << "a server reports it";
  audit.meta->reason = "an operator froze it";
  EXPECT_TRUE(CheckFactsSuffice(audit, {}, place).ok()) << "no ledger went back";
}

// A person who pastes the printed command loses no flag or argument of the first one.
TEST(RestorePolicyTest, ThePrintedCommandRepeatsAllFlagsAndArguments) {
  Audit audit = RestoredCluster().audit;
  audit.lost_tags = {{"order", 5'001}};
  RestoreArguments ran{.registry = "dir:///x", .from = "/backup"};
  ran.said_flags = {"--layout=firn", "--bound_ms=77", "--tag_high=a=5", "--retire=9"};
  ran.said_tags = {"first=6001,step=50"};
  EXPECT_THAT(
      CheckFactsSuffice(audit, {}, ran).message(),
      HasSubstr(std::string("\nfirn restore --registry=dir:///x --uuid=") + kRestoredUuid +
                " --rack_bits=2 --default_strategy= --from=/backup --layout=firn --bound_ms=77 "
                "--tag_high=a=5 --retire=9 first=6001,step=50 order=200005001"));

  audit.lost_tags.clear();
  audit.meta->frozen = true;
  audit.meta->reason = LedgerWentBack("order", "it is at 101 and was at 5001");
  EXPECT_THAT(CheckFactsSuffice(audit, {}, ran).message(),
              HasSubstr("\nfirn restore --registry=dir:///x --from=/backup --layout=firn "
                        "--bound_ms=77 --tag_high=a=5,order=NUMBER --retire=9 first=6001,step=50"));
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
  RestoreFacts facts = restored.facts;
  AddBackup(backup, restored.audit, facts);
  EXPECT_EQ(facts.workers, 2u) << "the cluster has more than the backup";
  EXPECT_EQ(facts.ids_since, WallMs(5));
  EXPECT_EQ(facts.lease_share, 10);
  EXPECT_EQ(facts.retired, std::vector{MachineId(3)});
  const std::vector<ReportedBound> bounds{{kRestoredAt, MachineId(0)},
                                          {kRestoredAt + Milliseconds(1), MachineId(1)},
                                          {kRestoredAt + 2 * kPoisonAhead, MachineId(2)},
                                          {kRestoredAt + Milliseconds(1)}};
  EXPECT_EQ(facts.bounds, bounds);

  RestoreFacts said = restored.facts;
  said.workers = 7;
  said.ids_since = WallMs(9);
  said.lease_share = 20;
  AddBackup(backup, restored.audit, said);
  EXPECT_EQ(said.workers, 7u);
  EXPECT_EQ(said.ids_since, WallMs(9));
  EXPECT_EQ(said.lease_share, 20);
}

}  // namespace
}  // namespace firn
