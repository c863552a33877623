#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/id/layout.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

class FirnServerTest : public testing::Test {
 protected:
  static void Drain(RunningServer& server) {
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait(kPatience), 0) << server.log();
  }

  static void LoseNode(const std::string& registry, const std::string& path) {
    auto coordinator = OpenCoordinator(registry, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator blocking(**coordinator, SystemClock());
    ASSERT_TRUE(blocking.Connect(kPatience).ok());
    ASSERT_TRUE(blocking.Multi({Write::Erase(path, Write::kAnyVersion)}).status.ok());
  }

  TempDir dir_;
};

TEST_F(FirnServerTest, IssuesWithItsOwnRegistryAndContinuesAfterARestart) {
  std::set<int64_t> ids;
  int64_t last = 0;
  for (int i = 0; i < 2; ++i) {
    RunningServer server(dir_ / "state", {});
    ASSERT_TRUE(server.BecomesReady()) << server.log();
    for (int n = 0; n < 10; ++n) {
      const int64_t id = server.TakeId();
      EXPECT_GT(id, last);
      last = id;
      ids.insert(id);
    }
    Drain(server);
  }
  EXPECT_EQ(ids.size(), 20u);
}

TEST_F(FirnServerTest, ServesUnderTheConfiguredMachineId) {
  RunningServer server(dir_ / "state", {"--registry=static:13", "--static_first_start"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(Layout::Firn().Unpack(server.TakeId())->machine, MachineId(13));
  const auto status = JsonOf(server.Admin("/v1/status").body);
  EXPECT_EQ(status.at("machine"), 13);
  EXPECT_EQ(status.at("worker"), 3);
  EXPECT_EQ(status.at("rack"), 1);
  EXPECT_EQ(status.at("cluster_uuid"), "static");
  EXPECT_EQ(status.at("state"), "READY");
  EXPECT_EQ(status.at("sequencer"), "atomic");
  EXPECT_EQ(server.Admin("/metrics").body.find("firn_registry_connected"), std::string::npos)
      << "without a registry, none is away";
}

TEST_F(FirnServerTest, NamesItsSequencerInStatusAndLog) {
  RunningServer server(dir_ / "state", {"--sequencer=spin"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(JsonOf(server.Admin("/v1/status").body).at("sequencer"), "spin");
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return server.log().find("sequencer spin") != std::string::npos;
  })) << server.log();
}

TEST_F(FirnServerTest, HelpIsGroupedAndVersionIsPrinted) {
  const Finished help = RunToEnd({BuiltProgram("firn-server"), "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("\nLimits:\n"), std::string::npos) << help.out;
  EXPECT_EQ(help.out.find("stderrthreshold"), std::string::npos) << "only --helpfull lists it";
  const Finished full = RunToEnd({BuiltProgram("firn-server"), "--helpfull"});
  EXPECT_NE(full.out.find("stderrthreshold"), std::string::npos);
  const Finished version = RunToEnd({BuiltProgram("firn-server"), "--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_EQ(version.out.rfind("firn-server version ", 0), 0u) << version.out;
}

TEST_F(FirnServerTest, ReportsAFrozenClusterInStatusAndMetrics) {
  const std::string registry = "dir://" + (dir_ / "registry");
  RunningServer server(dir_ / "state", {"--registry=" + registry, "--issue_wait_ms=30000"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.Metric("firn_cluster_frozen"), 0);
  EXPECT_EQ(JsonOf(server.Admin("/v1/status").body).at("frozen"), false);
  const Finished made = RunFirn({"tags", "create", "order", "--registry=" + registry});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_TRUE(Eventually(kPatience, [&] { return server.Get("/v1/ids/order").status == 200; }));
  ASSERT_NO_FATAL_FAILURE(LoseNode(registry, "/tags/order"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.Metric("firn_cluster_frozen") == 1; }))
      << server.log();
  EXPECT_EQ(JsonOf(server.Admin("/v1/status").body).at("frozen"), true);
}

TEST_F(FirnServerTest, FirnWhoNamesTheProcessThatIssuedAnId) {
  std::vector<std::pair<int64_t, int>> issued;  // ids, and the pid of the issuer
  RunningServer server(dir_ / "state", {});
  for (int i = 0; i < 3; ++i) {
    if (i != 0) server.StartAgain();
    ASSERT_TRUE(server.BecomesReady()) << server.log();
    issued.emplace_back(server.TakeId(), server.process().pid());
    server.Kill();
  }
  const std::string registry = "--registry=dir://" + (dir_ / "state") + "/registry";
  for (const auto& [id, pid] : issued) {
    const Finished who = RunFirn({"who", std::to_string(id), registry, "--json"});
    ASSERT_EQ(who.exit_code, 0) << who.err;
    const auto holders = JsonOf(who.out).at(0).at("holders");
    ASSERT_EQ(holders.size(), 1u) << who.out;
    EXPECT_EQ(holders.at(0).at("pid"), pid);
  }
}

TEST_F(FirnServerTest, KeepsTheAdminSideOffThePublicPort) {
  RunningServer server(dir_ / "state", {});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.Get("/metrics").status, 404);
  EXPECT_EQ(server.Get("/v1/status").status, 404);
  EXPECT_EQ(server.Admin("/genid").status, 404);
  EXPECT_NE(server.Admin("/metrics").body.find("firn_ready 1\n"), std::string::npos);
}

TEST_F(FirnServerTest, ServesCallsWhileItIsOffline) {
  RunningServer server(dir_ / "state", {});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.PostAdmin("/v1/offline").status, 200);
  EXPECT_EQ(server.Admin("/readyz").body, "OFFLINE\n");
  EXPECT_GT(server.TakeId(), 0);
  EXPECT_EQ(server.PostAdmin("/v1/online").status, 200);
  EXPECT_EQ(server.Admin("/readyz").status, 200);
}

TEST_F(FirnServerTest, ServesDuringTheNoticeAndReleasesItsMachineId) {
  RunningServer server(dir_ / "state", {"--drain_notice_ms=2000"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  server.process().Signal(SIGTERM);
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.Admin("/readyz").status == 503; }));
  EXPECT_EQ(server.Admin("/readyz").body, "DRAINING\n");
  EXPECT_GT(server.TakeId(), 0);
  EXPECT_EQ(server.process().Wait(kPatience), 0);
  EXPECT_NE(server.log().find("released: "), std::string::npos) << server.log();
}

TEST_F(FirnServerTest, EndsAtOnceOnASecondSignal) {
  RunningServer server(dir_ / "state", {"--drain_notice_ms=600000"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  server.process().Signal(SIGTERM);
  ASSERT_TRUE(Eventually(kPatience, [&] { return server.Admin("/readyz").status == 503; }));
  // Too soon, it counts as the same request.
  std::optional<int> ended;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    server.process().Signal(SIGINT);
    ended = server.process().Wait(Milliseconds(100));
    return ended.has_value();
  }));
  EXPECT_EQ(ended, 1);
}

TEST_F(FirnServerTest, DrainsIfOneRequestToEndArrivesAsSeveralSignals) {
  RunningServer server(dir_ / "state", {});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  for (const int signal : {SIGTERM, SIGINT, SIGTERM, SIGINT}) server.process().Signal(signal);
  EXPECT_EQ(server.process().Wait(kPatience), 0) << server.log();
  EXPECT_NE(server.log().find("released: "), std::string::npos) << server.log();
}

TEST_F(FirnServerTest, RefusesAStateFolderInUse) {
  RunningServer first(dir_ / "state", {});
  ASSERT_TRUE(first.BecomesReady()) << first.log();
  ASSERT_TRUE(first.KeepsItsHint());
  for (const auto& entry : std::filesystem::directory_iterator(dir_ / "state")) {
    std::filesystem::path file = entry.path();
    if (file.extension() == ".properties") std::ofstream(file.replace_extension(".leases")) << "x";
  }
  const Finished second = RunToEnd({BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"),
                                    "--listen=127.0.0.1:" + std::to_string(first.port())});
  EXPECT_EQ(second.exit_code, 1) << second.err;
  EXPECT_EQ(second.err.find("bounds of earlier leases"), std::string::npos)
      << "it read a file that the first may change: " << second.err;
  EXPECT_GT(first.TakeId(), 0);
}

TEST_F(FirnServerTest, NamesEveryFaultOfItsConfigurationAtOnce) {
  const Finished finished = RunToEnd(
      {BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"), "--listen=nowhere",
       "--rack=1024", "--sequencer=abacus", "--idle_ms=1", "--layout=nothing", "--tls_key=k"});
  EXPECT_EQ(finished.exit_code, 2);
  for (const char* flag :
       {"--listen", "--rack", "--sequencer", "--idle_ms", "--layout", "--tls_cert"}) {
    EXPECT_NE(finished.err.find(flag), std::string::npos) << flag << ": " << finished.err;
  }
}

TEST_F(FirnServerTest, RefusesAnUnknownFlagAnywhere) {
  const std::string file = dir_ / "flags";
  std::ofstream(file) << "--rack=0\n--registy=zk://127.0.0.1:1/firn/x\n";
  for (const auto& [word, shown] :
       {std::pair<std::string, std::string>{"--flagfile=" + file, file + ":2: "},
        {"registry=dir:///x", "registry=dir"},
        {"--registy=x", "registy"}}) {
    const Finished finished =
        RunToEnd({BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"), word});
    EXPECT_EQ(finished.exit_code, 2) << word;
    EXPECT_NE(finished.err.find(shown), std::string::npos) << finished.err;
    EXPECT_FALSE(std::filesystem::exists(dir_ / "state")) << word;
  }
}

TEST_F(FirnServerTest, RefusesAnAddressThatClientsCannotReach) {
  const Finished finished = RunToEnd(
      {BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"), "--listen=0.0.0.0:7609"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("--advertise"), std::string::npos) << finished.err;
}

// The address belongs to no host, so the server stops before it listens.
TEST_F(FirnServerTest, WarnsOfPasswordsOnAPlainPortThatOtherHostsCanReach) {
  const std::string users = dir_ / "users";
  std::ofstream(users) << "alice:secret\n";
  ASSERT_EQ(chmod(users.c_str(), 0600), 0);
  TlsAuthority authority("warns");
  authority.Sign("server");
  const auto log = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"),
                               "--registry=dir://" + (dir_ / "registry"), "--listen=192.0.2.1:7609",
                               "--admin_listen=127.0.0.1:0"});
    const Finished finished = RunToEnd(more);
    EXPECT_EQ(finished.exit_code, 1) << finished.err;
    return finished.err;
  };
  const std::string with_users = "--redis_auth_file=" + users;
  const char* const warning =
      "passwords of --redis_auth_file cross the plain port 192.0.2.1:7609; set --tls_cert";
  EXPECT_NE(log({with_users}).find(warning), std::string::npos);
  EXPECT_EQ(log({}).find("passwords"), std::string::npos) << "no passwords are used";
  EXPECT_EQ(log({with_users, "--tls_cert=" + authority.File("server.crt"),
                 "--tls_key=" + authority.File("server.key")})
                .find("passwords"),
            std::string::npos)
      << "TLS encrypts them";
}

TEST_F(FirnServerTest, DoesNotWarnOfPasswordsOnLoopback) {
  const std::string users = dir_ / "users";
  std::ofstream(users) << "alice:secret\n";
  ASSERT_EQ(chmod(users.c_str(), 0600), 0);
  RunningServer server(dir_ / "state", {"--redis_auth_file=" + users});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.log().find("passwords"), std::string::npos) << server.log();
}

}  // namespace
}  // namespace firn
