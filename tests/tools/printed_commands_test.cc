// Tests the commands that messages contain: pastes each one unchanged into a shell, on a cluster in
// the state that the message describes. tests/drill/printed_command_drill_test tests the restore
// commands that servers print.

#include <string>

#include "tests/server/program/running_server.h"
#include "tests/support/paste.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

class PrintedCommandsTest : public FirnClusterTest {
 protected:
  // Returns the settings that no command may change.
  Json Settings() {
    Json settings = FirnJson({"audit"}).at("cluster");
    for (const char* changes : {"floor_ms", "version"}) settings.erase(changes);
    Json machines = Json::array();
    for (const Json& machine : FirnJson({"machines", "list"})) {
      if (machine.at("use") == "reserved") machines.push_back(NumberOf<int>(machine.at("machine")));
    }
    return {{"cluster", settings}, {"reserved", machines}, {"tags", FirnJson({"tags", "list"})}};
  }
};

TEST_F(PrintedCommandsTest, InitOfARegistryThatDoesNotExistAsksForAChoice) {
  const Finished missing = Firn({"audit"});
  const std::string command = CommandIn(PrintedCommand::kInit, missing.err);
  EXPECT_EQ(command, "firn init") << missing.err;
  const Finished pasted = Paste(PrintedCommand::kInit, command, {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 2) << pasted.out << pasted.err;
  EXPECT_NE(pasted.err.find("--brand-new"), std::string::npos) << pasted.err;
  EXPECT_NE(Firn({"audit"}).exit_code, 0) << "nothing was created";
}

// Otherwise a lost cluster would get another uuid, and servers would refuse it.
TEST_F(PrintedCommandsTest, RestoreWithoutArgumentsCreatesNoCluster) {
  const Finished pasted = Paste(PrintedCommand::kRestore, PrintCommand(PrintedCommand::kRestore),
                                {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 2) << pasted.out << pasted.err;
  EXPECT_NE(pasted.err.find("--from"), std::string::npos) << pasted.err;
  EXPECT_NE(Firn({"audit"}).exit_code, 0) << "nothing was created";
}

TEST_F(PrintedCommandsTest, RestoreWithoutArgumentsKeepsTheSettingsOfAFrozenCluster) {
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=snowflake"});
  FirnJson({"machines", "reserve", "1", "--reserved_for=old system"});
  FirnJson({"tags", "create", "limited", "strategy=snowflake", "plugins=rate"});
  const Json before = Settings();
  Freeze("data were lost");
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1) << audit.out;
  const Finished pasted = Paste(PrintedCommand::kRestore, PrintCommand(PrintedCommand::kRestore),
                                {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 0) << pasted.out << pasted.err;
  EXPECT_EQ(Settings(), before);
}

TEST_F(PrintedCommandsTest, MoreWorkersKeepEverything) {
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=snowflake"});
  FirnJson({"machines", "reserve", "1", "--reserved_for=old system"});
  FirnJson({"tags", "create", "limited", "strategy=snowflake", "plugins=rate"});
  const Json before = Settings();
  RunningServer server(folder_ / "server", {"--registry=" + registry_, "--worker=9"});
  std::string log;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    log = server.log();
    return !CommandIn(PrintedCommand::kRestoreWorkers, log).empty();
  })) << log;
  const Finished pasted =
      Paste(PrintedCommand::kRestoreWorkers, CommandIn(PrintedCommand::kRestoreWorkers, log),
            {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 0) << pasted.out << pasted.err;
  EXPECT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(Settings(), before);
}

TEST_F(PrintedCommandsTest, TheDateOfTheFirstIdIsAPlaceholder) {
  FirnJson({"restore", "--set=workers=4", "--layout=firn", "--set=default_strategy=snowflake"});
  const Finished refused = Firn({"tags", "create", "order", "start=1"});
  EXPECT_NE(refused.exit_code, 0);
  const std::string command = CommandIn(PrintedCommand::kRestoreIdsSince, refused.err);
  const Json before = Settings();
  const Finished pasted =
      Paste(PrintedCommand::kRestoreIdsSince, command, {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 2) << pasted.out << pasted.err;
  EXPECT_NE(pasted.err.find("'DATE' is not a date"), std::string::npos) << pasted.err;
  EXPECT_EQ(Settings(), before);
}

TEST_F(PrintedCommandsTest, TheStartOfATagIsAPlaceholder) {
  Init();
  FirnJson({"tags", "create", "it's", "strategy=segment"});
  const Finished restored = Firn({"restore"});
  const std::string command = CommandIn(PrintedCommand::kTagsSet, restored.out);
  const std::map<std::string, std::string> registry{{"FIRN_REGISTRY", registry_}};
  const Finished pasted = Paste(PrintedCommand::kTagsSet, command, registry);
  EXPECT_EQ(pasted.exit_code, 2) << command << "\n" << pasted.out << pasted.err;
  std::string complete = command;
  complete.replace(complete.find("NUMBER"), 6, "500000000");
  EXPECT_EQ(Paste(PrintedCommand::kTagsSet, complete, registry).exit_code, 0) << complete;
}

TEST_F(PrintedCommandsTest, CommandsThatListChangeNothing) {
  Init();
  const Json before = Settings();
  const std::map<std::string, std::string> registry{{"FIRN_REGISTRY", registry_}};

  const Finished offline = Firn({"servers", "offline", "127.0.0.1:1"});
  const Finished servers =
      Paste(PrintedCommand::kServers, CommandIn(PrintedCommand::kServers, offline.err), registry);
  EXPECT_EQ(servers.exit_code, 3) << "there is no server: " << servers.out << servers.err
                                  << offline.err;

  const Finished no_key = Firn({"tags", "create", "t", "strategy=snowflake", "plugins=obfuscate",
                                "obfuscate.key=k1", "obfuscate.check=x"});
  const Finished tags =
      Paste(PrintedCommand::kTags, CommandIn(PrintedCommand::kTags, no_key.err), registry);
  EXPECT_EQ(tags.exit_code, 2) << tags.out << tags.err << no_key.err;
  EXPECT_NE(tags.err.find("create TAG"), std::string::npos) << tags.err;

  const Finished far = Firn({"explain", "4611686018427387904"});
  const Finished explain =
      Paste(PrintedCommand::kExplainTag, CommandIn(PrintedCommand::kExplainTag, far.out), registry);
  EXPECT_EQ(explain.exit_code, 4) << explain.out << explain.err << far.out;

  EXPECT_EQ(Settings(), before);
}

// `firn doctor` notes the operator's last setting, with the command that reverts it.
TEST_F(PrintedCommandsTest, ServersOnlineUndoesWhatTheDoctorNotes) {
  Init();
  RunningServer server(folder_ / "server", {"--registry=" + registry_});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  std::string said;
  const auto doctor = [&] {
    const Finished finished = Firn({"doctor"});
    EXPECT_EQ(finished.exit_code, 0) << finished.out << finished.err;
    said = finished.out;
    const std::string fix = "fix: ";
    const size_t at = said.find(fix);
    if (at == said.npos) return std::string();
    return said.substr(at + fix.size(), said.find('\n', at) - at - fix.size());
  };
  Json servers;
  ASSERT_TRUE(Eventually(kPatience, [&] {
    servers = FirnJson({"audit"}).at("providers");
    return !servers.empty();
  }));
  const std::string address = servers.at(0).at("address").text();
  EXPECT_EQ(Firn({"servers", "offline", address}).exit_code, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return !doctor().empty(); })) << said;
  const Finished pasted = Paste(PrintedCommand::kServers, doctor(), {{"FIRN_REGISTRY", registry_}});
  EXPECT_EQ(pasted.exit_code, 0) << pasted.out << pasted.err;
  EXPECT_EQ(doctor(), "") << said;
}

// Checks both JSON and text output.
TEST_F(PrintedCommandsTest, DoctorAndAuditExitWithTryLaterWithoutARegistry) {
  registry_ = "zk://127.0.0.1:" + std::to_string(FreePort()) + "/firn/test";
  for (const char* verb : {"doctor", "audit"}) {
    const Finished later = Firn({verb, "--timeout_ms=300"});
    EXPECT_EQ(later.exit_code, 3) << verb << ": " << later.out << later.err;
    EXPECT_NE((later.out + later.err).find(registry_), std::string::npos) << verb;
  }
  const Finished doctor = Firn({"doctor", "--timeout_ms=300"});
  EXPECT_EQ(doctor.out.find("REFUSED  the registry cannot be read: "), 0u) << doctor.out;
  EXPECT_NE(doctor.out.find("fix: bring " + registry_ + " back"), std::string::npos) << doctor.out;
  const Json json = FirnJson({"doctor", "--timeout_ms=300"}, 3);
  EXPECT_FALSE(json.at("healthy").boolean());
  EXPECT_EQ(json.at("findings").at(0).at("urgency"), "refused");
  EXPECT_TRUE(FirnJson({"audit", "--timeout_ms=300"}, 3).contains("error"));
}

TEST_F(PrintedCommandsTest, TheDoctorsExitCodeFollowsTheWorstFinding) {
  const Finished absent = Firn({"doctor"});
  EXPECT_EQ(absent.exit_code, 4) << absent.out;
  EXPECT_NE(absent.out.find("the registry cannot be read"), std::string::npos) << absent.out;
  Init();
  EXPECT_TRUE(FirnJson({"doctor"}).at("healthy").boolean());
  Announce({.phase = ServerPhase::kReady, .outdated = {{"t", "no room"}}});
  const Finished soon = Firn({"doctor"});
  EXPECT_EQ(soon.exit_code, 1) << soon.out;
  EXPECT_NE(soon.out.find("fix: firn tags set t buffer=double"), std::string::npos) << soon.out;
  Put(Write::Erase("/clock", Write::kAnyVersion));
  const Json lost = FirnJson({"doctor"}, 6);
  EXPECT_FALSE(lost.at("healthy").boolean());
  EXPECT_EQ(lost.at("findings").at(0).at("urgency"), "data");
  EXPECT_EQ(lost.at("findings"), FirnJson({"audit"}, 1).at("findings")) << "both from one code";
  const std::string fix = lost.at("findings").at(0).at("fix").text();
  EXPECT_EQ(fix.find("firn restore --registry=" + registry_), 0u) << fix;
}

}  // namespace
}  // namespace firn
