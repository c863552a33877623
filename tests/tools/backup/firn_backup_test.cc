// Tests `firn backup` and `firn restore --from` on a directory registry: the contents of a file,
// the refusal of files, and the cluster that a restore creates from one.

#include <string>
#include <vector>

#include "common/json/json.h"
#include "tests/support/json_of.h"
#include "tests/tools/backup/firn_backup_fixture.h"

namespace firn {
namespace {

TEST_F(FirnBackupTest, RecreatesAWipedClusterWithItsSettingsAndTags) {
  Make();
  const Json before = Cluster();
  const std::string path = Backup();
  Wipe();
  const Finished restored = Firn(RestoreFrom(path));
  EXPECT_EQ(restored.exit_code, 0) << restored.out << restored.err;
  for (const char* said :
       {"tag order is known from the backup alone; its next number is 6001 or higher",
        "tag gone is known from the backup alone", "re-created"}) {
    EXPECT_NE(restored.out.find(said), std::string::npos) << said << "\n" << restored.out;
  }
  for (const char* same : {"uuid", "layout"}) EXPECT_EQ(Cluster().at(same), before.at(same));
  EXPECT_EQ(HighOf("order"), "6001");
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("text"), "n{id}");
  const Json gone = FirnJson({"tags", "show", "gone"}).at(0);
  EXPECT_EQ(gone.at("disabled"), "true");
  EXPECT_EQ(gone.at("plugins"), "rate");
  const Json listed = FirnJson({"tags", "list"});
  for (const Json& tag : listed.at("tags")) EXPECT_NE(tag.at("tag"), "gone");
  std::vector<int> reserved;
  for (const Json& machine : FirnJson({"machines", "list"})) {
    if (machine.at("use") == "reserved") reserved.push_back(NumberOf<int>(machine.at("machine")));
  }
  EXPECT_EQ(reserved, std::vector<int>{1});
  EXPECT_EQ(FirnJson({"audit", "--all"}).at("machines").size(), 16u);
  EXPECT_EQ(Firn({"tags", "create", "later", "start=1"}).exit_code, 0) << "ids_since is known";
}

// A disconnected server with a larger window may still issue ids up to a bound that is this far
// ahead.
TEST_F(FirnBackupTest, TheFloorIsThreeOfTheLargestRecordedWindowsAhead) {
  Make();
  constexpr int64_t kWindowMs = 5'400'000;
  const std::string settings = "{\"claim_window_ms\":" + std::to_string(kWindowMs) + "}";
  Put(Write::Create("/settings", settings, Lifetime::kPersistent));
  const int64_t now = SystemClock().Wall().ms();
  EXPECT_GE(NumberOf(FirnJson({"restore"}).at("floor_ms")), now + 3 * kWindowMs);
  const std::string path = Backup();
  Wipe();
  FirnJson(RestoreFrom(path));
  const std::string after = Backup();
  EXPECT_NE(Read(after).find("\"claim_window_ms\": 5400000"), std::string::npos)
      << "recorded again";
  EXPECT_GE(NumberOf(FirnJson({"audit"}).at("cluster").at("floor_ms")), now + 6 * kWindowMs);
}

TEST_F(FirnBackupTest, ASecondRestoreChangesNothing) {
  Make();
  const std::string path = Backup();
  Wipe();
  FirnJson(RestoreFrom(path));
  Announce({});
  const Json audit = FirnJson({"audit", "--all"}, 1), tags = FirnJson({"tags", "list", "--all"});
  EXPECT_TRUE(FirnJson(RestoreFrom(path)).at("nothing_new").boolean());
  EXPECT_EQ(FirnJson({"audit", "--all"}, 1), audit);
  EXPECT_EQ(FirnJson({"tags", "list", "--all"}), tags);
}

TEST_F(FirnBackupTest, UndoesAnInitWithMoreRacks) {
  Make();
  const std::string path = Backup();
  Wipe();
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--rack_bits=3"});
  FirnJson(RestoreFrom(path));
  EXPECT_EQ(FirnJson({"audit", "--all"}).at("machines").size(), 16u);
}

TEST_F(FirnBackupTest, ADryRunPrintsTheSameNumbersAndChangesNothing) {
  Make();
  const std::string path = Backup();
  Break("/tags/order", R"({"strategy":"segment","high":101,"step":50,"step_max":400})");
  const Json before = FirnJson({"audit", "--all"});
  std::vector<std::string> dry = RestoreFrom(path);
  dry.push_back("--dry_run");
  const Json plan = FirnJson(dry);
  EXPECT_EQ(FirnJson({"audit", "--all"}), before);
  EXPECT_EQ(HighOf("order"), "101");
  const Json done = FirnJson(RestoreFrom(path));
  for (const Json& tag : plan.at("tags")) {
    EXPECT_EQ(HighOf(tag.at("tag").text()), tag.at("high")) << tag;
  }
  EXPECT_EQ(plan.at("uuid"), done.at("uuid"));
  EXPECT_LE(NumberOf(done.at("floor_ms")) - NumberOf(plan.at("floor_ms")), 60'000);
}

TEST_F(FirnBackupTest, NumbersOfABackupAreLowerBounds) {
  Make();
  const std::string path = Backup();
  Break("/tags/order", R"({"strategy":"segment","high":9001,"step":50,"step_max":400})");
  FirnJson(RestoreFrom(path));
  EXPECT_EQ(HighOf("order"), "10001") << "the registry knew more than the backup";
}

TEST_F(FirnBackupTest, KeepsEditsAndDeletionsThatAreNewerThanTheBackup) {
  Make();
  FirnJson({"tags", "create", "draft", "strategy=segment"});
  const std::string path = Backup();
  FirnJson({"tags", "delete", "draft"});
  FirnJson({"tags", "set", "bill", "text=b{id}"});
  const Finished restored = Firn(RestoreFrom(path));
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_NE(restored.out.find("tag draft stays deleted"), std::string::npos) << restored.out;
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("text"), "b{id}");
  EXPECT_EQ(Firn({"tags", "show", "draft"}).exit_code, 4);
}

// The registry was rolled back to a state before an edit of the form. Numbers were issued after the
// edit.
TEST_F(FirnBackupTest, TheFormInTheBackupCountsIfTheRegistryShowsNoNumber) {
  Make();
  FirnJson({"tags", "create", "day", "strategy=dated", "zone=UTC"});
  Break("/tags/day", R"({"strategy":"dated","zone":"UTC","high":20260101000101})");
  std::vector<std::string> restore = RestoreFrom(Backup());
  Break("/tags/day", R"({"strategy":"segment","high":0})");
  FirnJson(restore);
  EXPECT_EQ(FirnJson({"tags", "show", "day"}).at(0).at("strategy"), "dated");
  Break("/tags/day", R"({"strategy":"segment","high":101})");
  restore.push_back("--again");
  const Finished both = Firn(restore);
  EXPECT_EQ(both.exit_code, 4) << both.out;
  EXPECT_NE(both.err.find("--set=day.strategy=segment"), std::string::npos) << both.err;
  EXPECT_FALSE(Cluster().at("frozen").boolean());
  restore.emplace_back("--set=day.strategy=segment");
  FirnJson(restore);
  EXPECT_EQ(FirnJson({"tags", "show", "day"}).at(0).at("strategy"), "segment");
}

// The registry was rolled back to a state in which the tag was deleted before it issued numbers.
// The known numbers were issued later.
TEST_F(FirnBackupTest, RecreatesADeletedTagIfItsNumbersAreKnown) {
  Make();
  for (const char* tag : {"seen", "saved"}) {
    FirnJson({"tags", "create", tag, "step=50", "step_max=400"});
  }
  Break("/tags/saved", R"({"strategy":"segment","high":5001,"step":50,"step_max":400})");
  const std::string path = Backup();
  Break("/tags/saved", R"({"strategy":"segment","high":0,"step":50,"step_max":400})");
  for (const char* tag : {"seen", "saved"}) FirnJson({"tags", "delete", tag});
  std::vector<std::string> restore = RestoreFrom(path);
  restore.push_back("--set=seen.high=7000");
  FirnJson(restore);
  EXPECT_EQ(HighOf("seen"), "8001");
  EXPECT_EQ(HighOf("saved"), "6001");
}

// The registry was rolled back between the two backups, so neither file contains the higher number
// of both tags.
TEST_F(FirnBackupTest, SeveralFilesAreMergedInAnyOrder) {
  Make();
  const std::string first = Keep(Read(Backup()));
  Break("/tags/order", R"({"strategy":"segment","high":101,"step":50,"step_max":400})");
  Break("/tags/bill",
        R"({"strategy":"segment","high":7001,"step":50,"step_max":400,"text":"n{id}"})");
  const std::string second = Backup();
  for (const std::string& files : {first + "," + second, second + "," + first}) {
    Wipe();
    FirnJson(RestoreFrom(files));
    EXPECT_EQ(HighOf("order"), "6001");
    EXPECT_EQ(HighOf("bill"), "8001");
  }
  Wipe();
  Init();
  const Finished refused = Firn(RestoreFrom(first + "," + Backup()));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
}

TEST_F(FirnBackupTest, UndoesAnInitThatReplacedAClusterByMistake) {
  Make();
  const Json before = Cluster();
  const std::string path = Backup();
  Wipe();
  Init();
  EXPECT_NE(Cluster().at("uuid"), before.at("uuid"));
  FirnJson(RestoreFrom(path));
  EXPECT_EQ(Cluster().at("uuid"), before.at("uuid"));
  EXPECT_EQ(HighOf("order"), "6001");
}

TEST_F(FirnBackupTest, ANumberAloneKeepsTheFormInTheBackup) {
  Make();
  const std::string path = Backup();
  Wipe();
  std::vector<std::string> restore = RestoreFrom(path);
  restore.push_back("--set=bill.start=70001");
  FirnJson(restore);
  const Json bill = FirnJson({"tags", "show", "bill"}).at(0);
  EXPECT_EQ(bill.at("text"), "n{id}");
  EXPECT_EQ(bill.at("step"), "50");
  EXPECT_EQ(bill.at("start"), "70001");
}

TEST_F(FirnBackupTest, RefusesTheFileOfAnotherCluster) {
  Make();
  const std::string path = Backup();
  registry_ += "-other";
  Init();
  FirnJson({"restore", "--again"});
  const Json before = FirnJson({"audit", "--all"});
  const Finished refused = Firn(RestoreFrom(path));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("is a backup of cluster"), std::string::npos) << refused.err;
  std::vector<std::string> named = RestoreFrom(path);
  named.push_back("--uuid=6f9619ff-8b86-4d11-b42d-00c04fc964ff");
  EXPECT_EQ(Firn(named).exit_code, 4);
  EXPECT_EQ(FirnJson({"audit", "--all"}), before);
}

TEST_F(FirnBackupTest, RefusesDamagedAndNewerFilesBeforeItWritesAnything) {
  Make();
  const std::string text = Read(Backup());
  const Json before = FirnJson({"audit", "--all"});
  std::string newer = text, number = text, tag = text;
  newer.replace(newer.find("\"firn_backup\": 1"), 16, "\"firn_backup\": 3");
  number.replace(number.find("5001"), 4, "4001");
  tag.replace(tag.find("\"order\""), 7, "\"ordes\"");
  struct Row {
    std::string text;
    int exit_code;
    const char* said;
  };
  const Row rows[] = {{newer, 2, "format 3"},
                      {number, 6, "checksum does not match"},
                      {tag, 6, "checksum does not match"},
                      {text.substr(0, text.size() / 2), 6, "not a complete backup"},
                      {"", 6, "not a complete backup"},
                      {"{}", 6, "not a backup"},
                      {R"({"firn_backup":1})", 6, "no checksum"},
                      {std::string(100, '['), 6, "not a complete backup"}};
  for (const Row& row : rows) {
    const Finished refused = Firn(RestoreFrom(Keep(row.text)));
    EXPECT_EQ(refused.exit_code, row.exit_code) << refused.err;
    EXPECT_NE(refused.err.find(row.said), std::string::npos) << row.said << "\n" << refused.err;
  }
  EXPECT_EQ(Firn(RestoreFrom(folder_ / "missing.json")).exit_code, 4);
  EXPECT_EQ(FirnJson({"audit", "--all"}), before);
  EXPECT_EQ(FirnJson(RestoreFrom(Keep(JsonText(JsonOf(text))))).at("from_backup").size(), 0u)
      << "an intact file with other spaces is accepted";
}

TEST_F(FirnBackupTest, AnIncompleteClusterReplacesNoBackup) {
  Make();
  const std::string path = Backup(), text = Read(path);
  Freeze("data were lost");
  const Finished refused = Firn({"backup", path});
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("data were lost"), std::string::npos) << refused.err;
  EXPECT_EQ(Read(path), text);
  const Finished set = Firn({"set", "lease_share=70"});
  EXPECT_EQ(set.exit_code, 4) << set.out << set.err;
  EXPECT_NE(set.err.find("data were lost"), std::string::npos) << set.err;
}

TEST_F(FirnBackupTest, PrintsTheSameDocumentWithoutAFile) {
  Make();
  const Finished printed = Firn({"backup"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  Wipe();
  EXPECT_EQ(FirnJson(RestoreFrom(Keep(printed.out))).at("from_backup").size(), 4u);
}

}  // namespace
}  // namespace firn
