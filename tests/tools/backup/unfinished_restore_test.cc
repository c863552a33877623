// Tests refused runs of `firn restore` on a directory registry: the state that they leave, and how
// a later run continues.

#include <string>
#include <thread>
#include <vector>

#include "registry/cluster/freeze.h"
#include "registry/operate/backup.h"
#include "tests/support/json_of.h"
#include "tests/support/paste.h"
#include "tests/tools/backup/firn_backup_fixture.h"

namespace firn {
namespace {

using UnfinishedRestoreTest = FirnBackupTest;

// The first run is refused after it has frozen the cluster, because a server reports a tag that the
// backup lacks.
TEST_F(UnfinishedRestoreTest, ASecondRunCompletesAnInterruptedUndoOfAnInit) {
  Make();
  const std::string path = Backup(), repeat = "--from=" + path;
  Wipe();
  FirnJson({"init", "--brand-new", "--force", "--workers=8"});
  for (const char* tag : {"order", "bill"}) FirnJson({"tags", "create", tag});
  Announce({.high = {{"late", 7}}});
  const Finished refused = Firn(RestoreFrom(path));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;

  const Finished doctor = Firn({"doctor"});
  EXPECT_NE(doctor.out.find(repeat), std::string::npos) << doctor.out;
  const Finished without = Firn({"restore", "--set=late.strategy=segment"});
  EXPECT_EQ(without.exit_code, 4) << without.out;
  EXPECT_NE(without.err.find(repeat), std::string::npos) << without.err;

  std::vector<std::string> completed = RestoreFrom(path);
  completed.push_back("--set=late.strategy=segment");
  FirnJson(completed);
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("text"), "n{id}");
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("step"), "50");
  EXPECT_EQ(HighOf("order"), "6001");
  const Json audit = FirnJson({"audit", "--all"}, 1);
  EXPECT_EQ(audit.at("machines").size(), 16u) << "the size of the cluster in the backup";
  EXPECT_EQ(audit.at("faults").size(), 1u) << audit << "the provider that is not ephemeral";
}

// A printed command with `--from=-` would wait for standard input.
TEST_F(UnfinishedRestoreTest, APrintedCommandHasAPlaceholderForAPastedDocument) {
  Make();
  const std::string path = Backup();
  Wipe();
  Init();
  Announce({.high = {{"late", 7}}});
  const Finished refused =
      RunToEnd({"/bin/sh", "-c", "exec \"$0\" restore --from=- --registry=\"$1\" < \"$2\"",
                BuiltProgram("firn"), registry_, path});
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  for (const std::string& said : {refused.err, Firn({"doctor"}).out}) {
    EXPECT_NE(said.find(" --from=DOCUMENT"), std::string::npos) << said;
  }
  FirnJson({"restore", "--from=" + path, "--set=late.strategy=segment"});
}

// The first run is refused after it has frozen the cluster, because a server reports a tag that the
// backup lacks.
TEST_F(UnfinishedRestoreTest, ALaterRunContinuesWithTheAnswersOfTheFirst) {
  Make();
  const std::string path = Backup();
  Wipe();
  Init();
  Announce({.high = {{"late", 7}}});
  const int64_t bound = SystemClock().Wall().ms() + 20 * 3'600'000;
  std::vector<std::string> first = RestoreFrom(path);
  for (const std::string& more : {"floor=" + std::to_string(bound), std::string("retire=5"),
                                  std::string("reserve=6=x"), std::string("order.start=9001")}) {
    first.push_back("--set=" + more);
  }
  EXPECT_EQ(Firn(first).exit_code, 4);
  std::vector<std::string> later = RestoreFrom(path);
  later.push_back("--set=late.strategy=segment");
  EXPECT_GT(NumberOf(FirnJson(later).at("floor_ms")), bound);
  for (const Json& machine : FirnJson({"machines", "list"})) {
    const bool retired = machine.at("machine") == 5;
    if (!retired && machine.at("machine") != 6) continue;
    EXPECT_EQ(machine.at("use"), retired ? "retired" : "reserved");
  }
  EXPECT_EQ(HighOf("order"), "10002") << "the first run may have been completed and rolled back";
}

// The arguments do not suffice, which the command detects before it writes.
TEST_F(UnfinishedRestoreTest, ARefusalLeavesAnIntactClusterUnfrozen) {
  Make();
  const std::string path = Backup();
  Announce({.high = {{"late", 7}}});
  const Finished refused = Firn(RestoreFrom(path));
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_FALSE(FirnJson({"audit"}, 1).at("cluster").at("frozen").boolean());
}

// The server that reports the document's numbers stops while the restore waits for reports.
TEST_F(UnfinishedRestoreTest, AQuestionAfterTheWaitLeavesAnIntactClusterUnfrozen) {
  Make();
  auto known = ParseBackup(Read(Backup()));
  ASSERT_TRUE(known.ok()) << known.status();
  known->composed = true;
  const std::string path = Keep(FormatBackup(*known));
  Announce({.high = {{"order", 5'001}, {"bill", 0}}});
  std::thread restart([this] {
    SleepFor(Milliseconds(1'000));
    Put(Write::Erase(std::string(kProvidersPath) + "/" + ProviderNodeName({.address = "h:1"}),
                     Write::kAnyVersion));
  });
  const Finished restored = Firn(RestoreFrom(path));
  restart.join();
  EXPECT_EQ(restored.err.find("the cluster is frozen"), std::string::npos) << restored.err;
  EXPECT_FALSE(Cluster().at("frozen").boolean()) << restored.out << restored.err;
}

// No server runs, and no gap is known to suffice.
TEST_F(UnfinishedRestoreTest, AFreezeByALedgerNeedsItsNumber) {
  Make();
  const std::string path = Backup();
  Freeze(LedgerWentBack("order", "it is at 101 and was at 5001"));
  const Finished refused = Firn({"restore", "--tag_gap=1000"});
  EXPECT_EQ(refused.exit_code, 4) << refused.out << refused.err;
  EXPECT_NE(refused.err.find("was at 5001"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("--set=order.high=NUMBER"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("have, at least 5000:"), std::string::npos) << refused.err;
  EXPECT_TRUE(FirnJson({"audit"}, 1).at("cluster").at("frozen").boolean());
  FirnJson({"restore", "--tag_gap=1000", "--set=order.high=7000"});
  EXPECT_EQ(HighOf("order"), "8001");
  Freeze(LedgerWentBack("order", "it is at 101 and was at 5001"));
  FirnJson(RestoreFrom(path));
  EXPECT_FALSE(Cluster().at("frozen").boolean());
}

// The tags were edited between two backups, and have no numbers that show which one is later.
TEST_F(UnfinishedRestoreTest, OneAnswerDecidesBetweenTheDefinitionsOfManyTags) {
  Make();
  const auto apply = [this](const std::string& step) {
    std::string file;
    for (int i = 0; i < 21; ++i) {
      file += "[t" + std::to_string(i) + "]\nstrategy = segment\nstep = " + step + "\n";
    }
    EXPECT_EQ(Firn({"tags", "apply", WriteFile(file)}).exit_code, 0);
  };
  apply("50");
  const std::string first = Keep(Read(Backup()));
  apply("60");
  const std::string second = Backup();
  Wipe();
  const Finished asked = Firn(RestoreFrom(first + "," + second));
  EXPECT_EQ(asked.exit_code, 4) << asked.out << asked.err;
  const std::string command = CommandIn(PrintedCommand::kRestore, asked.err);
  EXPECT_NE(command.find("--set=definitions=any"), std::string::npos) << asked.err;
  const Finished pasted = Paste(PrintedCommand::kRestore, command, {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 0) << pasted.out << pasted.err;
  for (int i = 0; i < 21; ++i) {
    const Json step = FirnJson({"tags", "show", "t" + std::to_string(i)}).at(0).at("step");
    EXPECT_TRUE(step == "50" || step == "60") << step;
  }
}

}  // namespace
}  // namespace firn
