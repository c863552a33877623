// Tests the questions and refusals of a restore.

#include <algorithm>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"
#include "tests/registry/operate/restored_cluster.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

TEST(RestoreQuestionsTest, AsksForTheDefinitionOfALostTag) {
  Audit audit = RestoredCluster().audit;
  audit.lost_tags = {{"order", 5'001}, {"quiet", 0}};
  const RestoreArguments place{.registry = "dir:///x", .auth_file = "/etc/zk"};
  const Status refused = CheckFactsSuffice(audit, {}, kRestoredAt, place);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(), HasSubstr("the node of tag order is lost"));
  EXPECT_THAT(refused.message(),
              HasSubstr("\nfirn restore --registry=dir:///x --registry_auth_file=/etc/zk "
                        "--set=order.strategy=STRATEGY"));

  RestoreCall defined{.answers = {.tags = {{LedgerTag("order", 0)}}}};
  defined.ledgers.reports.push_back({.high = {{"order", 5'001}}});
  EXPECT_TRUE(CheckFactsSuffice(audit, defined, kRestoredAt, place).ok());
  RestoreCall with_backup;
  with_backup.ledgers.backup.emplace();
  with_backup.ledgers.backup->tags = {SavedTag(LedgerTag("order", 1))};
  EXPECT_TRUE(CheckFactsSuffice(audit, with_backup, kRestoredAt, place).ok());
}

TEST(RestoreQuestionsTest, AsksForTheNumberOfATagThatOnlyStoppedServersKnow) {
  const Audit audit = RestoredCluster().audit;
  RestoreCall call;
  call.ledgers.backup.emplace();
  call.ledgers.backup->tags = {SavedTag(LedgerTag("order", 5'001))};
  Backup whole = *call.ledgers.backup, composed = whole;
  composed.composed = true;
  call.ledgers.documents = {whole};
  EXPECT_TRUE(CheckFactsSuffice(audit, call, kRestoredAt, {}).ok()) << "a backup of the registry";
  call.ledgers.documents = {whole, composed};
  EXPECT_THAT(CheckFactsSuffice(audit, call, kRestoredAt, {}).message(),
              ::testing::AllOf(HasSubstr("up to 5000"), HasSubstr("--set=order.high=NUMBER")));
  RestoreCall reported = call, started = call;
  reported.ledgers.reports = {{.high = {{"order", 5'000}}}};
  EXPECT_FALSE(CheckFactsSuffice(audit, reported, kRestoredAt, {}).ok())
      << "a server that has started since reports a registry that went back";
  reported.ledgers.reports.push_back({.high = {{"order", 5'001}}});
  EXPECT_TRUE(CheckFactsSuffice(audit, reported, kRestoredAt, {}).ok())
      << "the operator's answer, too";
  started.ledgers.starts = {{"order", 6'001}};
  EXPECT_TRUE(CheckFactsSuffice(audit, started, kRestoredAt, {}).ok());
  for (int i = 0; i < 20; ++i) {
    composed.tags.push_back(SavedTag(LedgerTag("t" + std::to_string(i), 101)));
  }
  std::ranges::sort(composed.tags, {}, [](const TagNode& node) { return node.tag.name; });
  call.ledgers.backup = composed;
  call.ledgers.documents = {composed};
  EXPECT_THAT(CheckFactsSuffice(audit, call, kRestoredAt, {}).message(),
              ::testing::AllOf(HasSubstr("of 21 tags"), HasSubstr("--set=folders=VALUE"),
                               ::testing::Not(HasSubstr("NUMBER"))))
      << "one answer for all";
  call.answers.all_folders = true;
  EXPECT_TRUE(CheckFactsSuffice(audit, call, kRestoredAt, {}).ok());
}

TEST(RestoreQuestionsTest, AsksForTheNumberOfADatedTagWhosePeriodHasNoRoomForTheGap) {
  Audit audit = RestoredCluster().audit;
  audit.tags = {{.name = "bill", .strategy = "dated", .high = 20'250'615'905'001}};
  RestoreCall call;
  EXPECT_THAT(CheckFactsSuffice(audit, call, kRestoredAt, {}).message(),
              ::testing::AllOf(HasSubstr("beyond its last number, 20250615999999"),
                               HasSubstr("--set=bill.start=NUMBER")));
  call.ledgers.starts = {{"bill", 20'250'615'905'001}};
  EXPECT_TRUE(CheckFactsSuffice(audit, call, kRestoredAt, {}).ok());
  call.ledgers.starts = {{"bill", 202'506'159'050'020}};
  EXPECT_THAT(CheckFactsSuffice(audit, call, kRestoredAt, {}).message(),
              HasSubstr("not a number of a period up to now"));
  call.ledgers.starts = {{"bill", 20'250'617'000'001}};
  EXPECT_FALSE(CheckFactsSuffice(audit, call, kRestoredAt, {}).ok()) << "the day after tomorrow";
  Audit ahead = audit;
  ahead.tags.front().high = 20'250'617'905'001;
  call.ledgers.starts = {{"bill", 20'250'617'905'001}};
  EXPECT_TRUE(CheckFactsSuffice(ahead, call, kRestoredAt, {}).ok()) << "the clock went back";
  const WallMs next_day = kRestoredAt + Milliseconds(86'400'000);
  EXPECT_TRUE(CheckFactsSuffice(audit, {}, next_day, {}).ok()) << "the next period has room";
}

TEST(RestoreQuestionsTest, AsksForTheSettingsOfALostClusterThatNoDocumentContains) {
  RestoreCall call{.is_lost = true};
  const auto told = [&call] { return CheckSettings({}, call, {}).message(); };
  EXPECT_THAT(told(), HasSubstr("--set=default_strategy=VALUE --set=reserve=VALUE "
                                "--set=tags=VALUE --set=window=MILLISECONDS"));
  call.ledgers.backup.emplace();
  EXPECT_EQ(told(), "");
  call.ledgers.backup->settings_known = call.ledgers.backup->tags_known = false;
  call.answers = {.reserved = std::vector<ReservedIds>(), .default_strategy = ""};
  EXPECT_THAT(told(), HasSubstr("firn restore --registry= --set=tags=VALUE"));
  call.answers.no_other_tags = true;
  EXPECT_EQ(told(), "");
  call.ledgers.backup->root.window = Milliseconds(0);
  EXPECT_THAT(told(), HasSubstr("--set=window=MILLISECONDS"));
  call.answers.window = Milliseconds(600'000);
  EXPECT_EQ(told(), "");
}

TEST(RestoreQuestionsTest, AsksForTagsThatAnIncompleteListLacks) {
  RestoreCall call{.is_lost = true};
  const auto told = [&call] { return CheckSettings({}, call, {}).message(); };
  call.ledgers.backup.emplace().tags = {SavedTag(LedgerTag("order", 5'001))};
  EXPECT_EQ(told(), "");
  call.ledgers.backup->tags_known = false;
  EXPECT_THAT(told(), HasSubstr("a server's list is incomplete"));
  EXPECT_THAT(told(), HasSubstr("firn restore --registry= --set=tags=VALUE"));
  call.answers.tags = {{.tag = LedgerTag("order", 0), .defined = false}};
  EXPECT_NE(told(), "") << "a number of another tag";
  call.answers.tags = {{.tag = LedgerTag("user", 0)}};
  EXPECT_NE(told(), "") << "there may be other tags";
  call.answers.no_other_tags = true;
  EXPECT_EQ(told(), "");
  call.answers.no_other_tags = false;
  Backup& whole = call.ledgers.documents.emplace_back();
  EXPECT_NE(told(), "") << "a backup of the registry, from before it had so many tags";
  for (size_t i = 0; i < 10'000; ++i) whole.tags.push_back(SavedTag(LedgerTag("t", 1)));
  EXPECT_EQ(told(), "");
}

TEST(RestoreQuestionsTest, AsksForDefinitionsAndSharesOfWhichNoneIsKnownToBeLater) {
  Audit audit = RestoredCluster().audit;
  RestoreCall call{.is_lost = true};
  const auto told = [&] { return CheckSettings(audit, call, {}).message(); };
  Backup& backup = call.ledgers.backup.emplace();
  backup.tags = {SavedTag(LedgerTag("order", 5'001))};
  backup.other_tags = backup.tags;
  backup.other_tags.front().tag.step = 70;
  EXPECT_THAT(told(),
              HasSubstr("different definitions of tag 'order', and none of them is known to "
                        "be the latest; step=50 or step=70;"));
  EXPECT_THAT(told(), HasSubstr("--set=order.strategy=segment --set=order.step=VALUE "
                                "--set=order.step_max=400"));
  audit.tags = {LedgerTag("order", 1)};
  EXPECT_EQ(told(), "") << "the registry has the definition";
  backup.other_tags.front().tag.text = "n{id}";
  EXPECT_THAT(told(), HasSubstr("a document has tag 'order' in another form than the registry"));
  audit.tags.clear();
  EXPECT_THAT(told(), HasSubstr("; text= or text=n{id}"));
  for (const TagNode& node : {backup.tags.front(), backup.other_tags.front()}) {
    call.answers.tags = {{node.tag}};
    EXPECT_EQ(told(), "") << "either form may count";
  }
  backup.other_shares = {{.share = 70}};
  EXPECT_THAT(told(), HasSubstr("50 or 70 % of the machine ids"));
  call.is_lost = false;
  audit.meta->frozen = true;
  audit.meta->reason = "the cluster is being restored";
  EXPECT_EQ(told(), "") << "the root node has the share";
  audit.meta->reason = "the cluster is being made anew";
  EXPECT_THAT(told(), HasSubstr("50 or 70 % of the machine ids"));
  call.answers.lease_share = 70;
  EXPECT_EQ(told(), "");
}

TEST(RestoreQuestionsTest, AsksForTheFloorIfAHolderIsSilentAndNoDocumentContainsIt) {
  Audit audit = RestoredCluster().audit;
  RestoreCall call;
  Backup& backup = call.ledgers.backup.emplace();
  backup.settings_known = false;
  backup.bounds = {{MachineId(4), kRestoredAt + Milliseconds(5)},
                   {MachineId(5), kRestoredAt + 2 * kPoisonAhead}};
  backup.reached = {kRestoredAt + Milliseconds(6)};
  call.ledgers.documents = {backup};
  const auto silent = [&] { return SilentHolders(audit, {backup}, kRestoredAt).size(); };
  const auto told = [&] { return CheckFactsSuffice(audit, call, kRestoredAt, {}).message(); };
  EXPECT_EQ(silent(), 3u) << "ids may be days ahead";
  EXPECT_THAT(told(), HasSubstr("--set=floor=TIME"));
  backup.settings_known = true;
  EXPECT_EQ(silent(), 2u) << "an implausible bound is retired";
  backup.settings_known = false;
  backup.bounds = {{MachineId(4), kRestoredAt + 3 * kPoisonAhead}};
  call.ledgers.documents = {backup};
  EXPECT_THAT(told(), HasSubstr("--set=floor=TIME"));
  backup.bounds = {{MachineId(4), kRestoredAt + Milliseconds(5)}};
  call.ledgers.documents = {backup};
  audit.providers = {{{}, {.machine = MachineId(4), .bound = kRestoredAt}}};
  EXPECT_EQ(silent(), 1u);
  audit.providers.front().report.lease_bound = backup.reached.front();
  EXPECT_EQ(silent(), 0u);
  EXPECT_EQ(told(), "");
  audit.providers.clear();
  call.answers.floors = {kRestoredAt};
  EXPECT_EQ(told(), "");
  call.answers.floors.clear();
  backup.settings_known = true;
  EXPECT_EQ(told(), "") << "the floor is known";
}

// After many restores, ids are three days ahead of all clocks.
TEST(RestoreQuestionsTest, AHolderWhoseIdsAreFarAheadMayBeSilent) {
  Audit audit = RestoredCluster().audit;
  Backup document;
  document.bounds = {{MachineId(4), kRestoredAt + 3 * kPoisonAhead}};
  EXPECT_TRUE(SilentHolders(audit, {document}, kRestoredAt).empty());
  audit.meta->floor = kRestoredAt + 3 * kPoisonAhead;
  EXPECT_EQ(SilentHolders(audit, {document}, kRestoredAt).size(), 1u);
  document.root.floor = audit.meta->floor;
  EXPECT_EQ(SilentHolders({}, {document}, kRestoredAt).size(), 1u) << "lost";
}

TEST(RestoreQuestionsTest, AsksForTheFormOfATagWhoseIdsMayExistInTwoForms) {
  Audit audit = RestoredCluster().audit;
  audit.tags = {LedgerTag("order", 5'001)};
  RestoreCall call;
  const auto told = [&] { return CheckSettings(audit, call, {}).message(); };
  TagDefinition other = LedgerTag("order", 0);
  other.text = "n{id}";
  call.answers.tags = {{other}};
  EXPECT_THAT(told(), HasSubstr("an answer has tag 'order' in another form than the registry"));
  call.ledgers.made["order"] = 1;
  EXPECT_EQ(told(), "") << "this restore has made the tag: no id of it was issued";
  call.ledgers.made.clear();
  call.answers.tags = {{audit.tags.front()}};
  EXPECT_EQ(told(), "");
  other.high = 7'001;
  call.ledgers.backup.emplace().tags = {SavedTag(other)};
  EXPECT_EQ(told(), "") << "the answer says which form counts";
  call.answers.tags.clear();
  EXPECT_THAT(told(), HasSubstr("a document has tag 'order' in another form than the registry"));
  audit.tags.clear();
  call.answers.tags = {{LedgerTag("order", 0)}};
  EXPECT_THAT(told(), HasSubstr("an answer has tag 'order' in another form than a document"));
}

// The document is from before the edit that gave the tag its owner.
TEST(RestoreQuestionsTest, KeepsAnOwnerUnlessAnAnswerTakesItAway) {
  TagDefinition present = LedgerTag("order", 5'001), saved = present;
  present.buffer = TagBuffer::kOwner;
  saved.buffer = TagBuffer::kNone;
  Audit audit = RestoredCluster().audit;
  audit.tags = {present};
  RestoreCall call;
  call.ledgers.backup.emplace().tags = {SavedTag(saved)};
  const auto told = [&] { return CheckSettings(audit, call, {}).message(); };
  EXPECT_EQ(told(), "");
  call.answers.tags = {{present}};
  EXPECT_EQ(told(), "");
  call.answers.tags = {{saved}};
  EXPECT_THAT(told(), HasSubstr("an answer has tag 'order' in another form than the registry"));
  EXPECT_THAT(told(), HasSubstr("order.buffer=owner"));
}

// The registry has lost the edit that gave the tag its owner, or the document is of an earlier tag
// with this name.
TEST(RestoreQuestionsTest, AsksWhetherATagHasAnOwnerIfOnlyADocumentShowsIt) {
  for (const TagBuffer buffer : {TagBuffer::kNone, TagBuffer::kDouble}) {
    TagDefinition present = LedgerTag("order", 5'001);
    present.buffer = buffer;
    for (const int64_t high : {501, 9'001}) {
      TagDefinition saved = LedgerTag("order", high);
      Audit audit = RestoredCluster().audit;
      audit.tags = {present};
      RestoreCall call;
      Backup& backup = call.ledgers.backup.emplace();
      backup.tags = {SavedTag(saved)};  // of a document from before the edit
      saved.buffer = TagBuffer::kOwner;
      backup.other_tags = {SavedTag(saved)};
      const auto told = [&] { return CheckSettings(audit, call, {}).message(); };
      for (const bool merged : {true, false}) {
        if (!merged) backup.tags = std::exchange(backup.other_tags, {});
        call.answers = {};
        EXPECT_THAT(told(), HasSubstr("a document has tag 'order' with buffer=owner, but the "
                                      "registry has it with buffer="));
        EXPECT_THAT(told(), HasSubstr("--set=order.buffer=VALUE"));
        for (const TagDefinition& answer : {present, saved}) {
          call.answers.tags = {{answer}};
          EXPECT_EQ(told(), "");
        }
      }
    }
  }
}

TEST(RestoreQuestionsTest, NamesATagThatOnlyAnAnswerKnows) {
  const Audit audit = RestoredCluster().audit;
  const GivenTag number{.tag = LedgerTag("ordre", 0), .defined = false};
  EXPECT_THAT(CheckFactsSuffice(audit, {.answers = {.tags = {number}}}, kRestoredAt, {}).message(),
              HasSubstr("tag 'ordre' is in neither the registry nor a document"));
  const RestoreAnswers high{.highs = {.high = {{"ordre", 5}}}};
  EXPECT_THAT(CheckFactsSuffice(audit, {.answers = high}, kRestoredAt, {}).message(),
              HasSubstr("tag 'ordre' is in neither the registry nor a document"));
}

TEST(RestoreQuestionsTest, ContinuesAnUnfinishedRestoreOnlyWithItsDocuments) {
  Audit audit = RestoredCluster().audit;
  audit.findings.push_back({Urgency::kData, "a node is missing", {}, /*restore=*/true});
  audit.unfinished = RestoreMemory{
      .documents = {{"/a b.json", "c1", kRestoredAt}}, .flags = {"--set=retire=5"}, .plan = "p"};
  const RestoreArguments place{.registry = "dir:///x"};
  const auto told = [&](const RestoreMemory& ran) {
    return CheckContinues(audit, ran, place).message();
  };
  EXPECT_THAT(told({}), HasSubstr(std::string("\nfirn restore --registry=dir:///x "
                                              "'--from=/a b.json' --uuid=") +
                                  kRestoredUuid));
  audit.unfinished->host = "db1";
  EXPECT_THAT(told({}), HasSubstr("\non db1: firn restore --registry=dir:///x"));
  EXPECT_EQ(RepairCommand(audit, {.registry = "", .host = "db2"}).find("on db1: "), 0u);
  EXPECT_EQ(RepairCommand(audit, {.registry = "", .host = "db1"}).find("firn restore"), 0u);
  EXPECT_EQ(told({.documents = {{"/c", "c1", kRestoredAt}}}), "") << "the same document";
  EXPECT_NE(told({.documents = {{"/c", "c1", WallMs(1)}}}), "") << "it was put back";
  EXPECT_NE(told({.documents = {{"/c", "c2", kRestoredAt + Milliseconds(1)}}}), "")
      << "the registry may have gone back before a later one was taken";
  audit.unfinished->documents.push_back({"/older", "c3", WallMs(1)});
  EXPECT_THAT(told({}), HasSubstr("'--from=/a b.json,/older'"));
}

TEST(RestoreQuestionsTest, RefusesToLiftALedgerThatWentBackWithoutItsNumber) {
  Audit audit = RestoredCluster().audit;
  audit.meta->frozen = true;
  audit.meta->reason = LedgerWentBack("a.b c", "it is at 101 and was at 5001");
  const RestoreArguments place{.registry = "dir:///x"};
  const Status refused = CheckFactsSuffice(audit, {}, kRestoredAt, place);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(),
              HasSubstr("\nfirn restore --registry=dir:///x --set=a%2Eb+c.high=NUMBER"));
  EXPECT_THAT(refused.message(), HasSubstr("have, at least 5000:\n")) << "less is asked again";
  Audit lost = audit;
  lost.meta->reason = LedgerWentBack("a.b c", "its node is missing");
  lost.tags = {{.name = "a.b c", .strategy = "segment", .high = 416}};
  EXPECT_THAT(CheckFactsSuffice(lost, {}, kRestoredAt, place).message(),
              HasSubstr("have, at least 415:\n"));

  RestoreCall call;
  call.ledgers.reports.push_back({.high = {{"a.b c", 101}}});
  EXPECT_FALSE(CheckFactsSuffice(audit, call, kRestoredAt, place).ok())
      << "a server that has started since";
  call.ledgers.reports.push_back({.high = {{"a.b c", 5'001}}});
  EXPECT_TRUE(CheckFactsSuffice(audit, call, kRestoredAt, place).ok()) << "a server reports it";
  audit.meta->reason = "an operator froze it";
  EXPECT_TRUE(CheckFactsSuffice(audit, {}, kRestoredAt, place).ok()) << "no ledger went back";
}

TEST(RestoreQuestionsTest, ThePrintedCommandRepeatsAllFlagsAndAnswers) {
  Audit audit = RestoredCluster().audit;
  audit.lost_tags = {{"order", 5'001}};
  const RestoreArguments ran{
      .registry = "dir:///x",
      .from = "/backup",
      .flags = {"--layout=firn", "--set=order.strategy=x", "--set=retire=9"}};
  EXPECT_THAT(CheckFactsSuffice(audit, {}, kRestoredAt, ran).message(),
              HasSubstr("\nfirn restore --registry=dir:///x --from=/backup --layout=firn "
                        "--set=retire=9 --set=order.strategy=STRATEGY"));
}

TEST(RestoreQuestionsTest, RefusesAnswersBelowValuesThatAnInterruptedRunHasNotUsed) {
  Audit audit = RestoredCluster().audit;
  audit.tags = {LedgerTag("order", 6'001)};
  audit.settings.window = 2 * kRestoreWindow;
  RestoreCall call{.answers = {.highs = {.high = {{"order", 5'001}}}, .floors = {kRestoredAt}}};
  const auto code = [&] { return CheckAnswersRaise(audit, call).code(); };
  EXPECT_EQ(code(), Code::kConflict);
  audit.unfinished.emplace();
  EXPECT_EQ(code(), Code::kConflict) << "the ledger is 6001";
  audit.unfinished->flags = {"--set=order.high=5000"};
  EXPECT_EQ(code(), Code::kOk) << "the first run has used it";
  call.answers.highs.high["order"] = 5'002;
  EXPECT_EQ(code(), Code::kConflict) << "another one";
  call.answers.highs.high.clear();
  call.answers.window = kRestoreWindow;
  EXPECT_EQ(code(), Code::kConflict);
  audit.unfinished->flags = {"--set=window=600000"};
  EXPECT_EQ(code(), Code::kOk);

  // A later run has a document with a higher floor than the first run's answer.
  call.ledgers.backup.emplace().root.floor = kRestoredAt + Milliseconds(10);
  EXPECT_EQ(code(), Code::kConflict);
  audit.unfinished->flags.push_back("--set=floor=" + std::to_string(kRestoredAt.ms()));
  EXPECT_EQ(code(), Code::kOk) << "it is remembered in any case";
  call.answers.floors = {kRestoredAt, kRestoredAt + Milliseconds(10)};
  EXPECT_EQ(code(), Code::kOk) << "the highest counts";
}

}  // namespace
}  // namespace firn
