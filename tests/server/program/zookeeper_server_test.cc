// firn-server on a real ZooKeeper, seen from outside: over HTTP, and by the firn command.

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "registry/servers/provider.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

class ZooKeeperServerTest : public testing::Test {
 protected:
  // One ZooKeeper for all tests, a cluster for each.
  static void SetUpTestSuite() {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
  }
  static void TearDownTestSuite() { zookeeper_.reset(); }

  void SetUp() override {
    ASSERT_NE(zookeeper_, nullptr);
    const Finished made = Firn({"init", "--brand-new", "--force", "--workers=4"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  RunningServer Server(std::vector<std::string> flags = {}) {
    flags.push_back("--registry=" + registry());
    flags.push_back("--session_timeout_ms=2000");
    return RunningServer(dir_ / "state", std::move(flags));
  }

  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry(), "--timeout_ms=30000"});
  }
  static std::string registry(const std::string& suffix = {}) {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return "zk://" + zookeeper_->hosts() + "/firn/" + test->name() + suffix;
  }

  Json Audit() const { return JsonOf(Firn({"audit", "--json"}).out); }

  // Returns the state in its provider node; empty if there is no node.
  std::string Announced(const RunningServer& server) const {
    const Json audit = Audit();
    for (const Json& provider : audit.at("providers")) {
      if (provider.at("address") == server.address()) return provider.at("state").text();
    }
    return {};
  }
  bool Announces(const RunningServer& server, ServerPhase phase) const {
    return Eventually(kPatience, [&] { return Announced(server) == AnnouncedPhase(phase); });
  }

  // Whether the registry has the operator's setting, which the answer to the operator does not
  // await.
  bool IsOfflineToClients(const RunningServer& server) const {
    const Json seen = JsonOf(Firn({"servers", "--json"}).out);
    if (!seen.is_object() || !seen.contains("servers")) return false;
    const Json& servers = seen.at("servers");
    return std::any_of(servers.begin(), servers.end(), [&](const Json& shown) {
      return shown.at("address") == server.address() && shown.at("offline") == true;
    });
  }

  static Json StatusOf(const RunningServer& server) {
    return JsonOf(server.Admin("/v1/status").body);
  }
  static bool Says(const RunningServer& server, const std::string& state) {
    return Eventually(kPatience,
                      [&] { return server.Admin("/readyz").body.starts_with(state + "\n"); });
  }

  // The content of a folder that was copied from another cluster's server.
  void RememberAnotherCluster() const {
    for (const auto& entry : std::filesystem::directory_iterator(dir_ / "state")) {
      if (entry.path().extension() != ".properties") continue;
      std::ifstream file(entry.path());
      std::string text{std::istreambuf_iterator<char>(file), {}};
      const size_t at = text.find("cluster=") + 8;
      text.replace(at, 36, "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab");
      std::ofstream(entry.path()) << text;
    }
  }

  TempDir dir_;
  static std::unique_ptr<ZooKeeper> zookeeper_;
};

std::unique_ptr<ZooKeeper> ZooKeeperServerTest::zookeeper_;

TEST_F(ZooKeeperServerTest, IsListedAndAudited) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_TRUE(Announces(server, ServerPhase::kReady));
  const Json audit = Audit();
  EXPECT_EQ(audit.at("faults"), Json::array());
  ASSERT_EQ(audit.at("machines").size(), 1u);
  const Json& machine = audit.at("machines").at(0);
  const Json status = StatusOf(server);
  EXPECT_EQ(machine.at("machine"), status.at("machine"));
  EXPECT_EQ(machine.at("endpoint"), server.address());
  EXPECT_EQ(machine.at("live"), true);
  EXPECT_EQ(audit.at("cluster").at("uuid"), status.at("cluster_uuid"));
}

TEST_F(ZooKeeperServerTest, KeepsItsMachineIdAfterAKill) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const Json machine = StatusOf(server).at("machine");
  const int64_t before = server.TakeId();
  ASSERT_TRUE(server.KeepsItsHint());
  server.Kill();
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(StatusOf(server).at("machine"), machine);
  EXPECT_GT(server.TakeId(), before);
  EXPECT_TRUE(Announces(server, ServerPhase::kReady));
}

TEST_F(ZooKeeperServerTest, RestartsWhileZooKeeperIsUnreachable) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const Json machine = StatusOf(server).at("machine");
  const int64_t before = server.TakeId();
  ASSERT_TRUE(server.KeepsItsHint());
  server.Kill();
  zookeeper_->KillAll();
  server.StartAgain();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_GT(server.TakeId(), before);
  EXPECT_EQ(StatusOf(server).at("machine"), machine);
  EXPECT_NE(StatusOf(server).at("cluster_uuid"), "");
  ASSERT_TRUE(zookeeper_->RestartAll().ok());
  EXPECT_TRUE(Announces(server, ServerPhase::kReady));
  EXPECT_EQ(StatusOf(server).at("machine"), machine);
}

TEST_F(ZooKeeperServerTest, ReleasesItsMachineId) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ASSERT_TRUE(Announces(server, ServerPhase::kReady));
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(kPatience), 0) << server.log();
  const Json audit = Audit();
  EXPECT_EQ(audit.at("providers"), Json::array());
  ASSERT_EQ(audit.at("machines").size(), 1u);
  EXPECT_EQ(audit.at("machines").at(0).at("use"), "released") << audit;
  EXPECT_EQ(audit.at("machines").at(0).at("live"), false);
}

TEST_F(ZooKeeperServerTest, OfflineSurvivesARestart) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.PostAdmin("/v1/offline").status, 200);
  EXPECT_TRUE(Announces(server, ServerPhase::kDraining));
  EXPECT_EQ(StatusOf(server).at("state"), "OFFLINE");
  EXPECT_TRUE(Eventually(kPatience, [&] { return IsOfflineToClients(server); }));
  ASSERT_TRUE(server.KeepsItsHint());
  server.Kill();
  server.StartAgain();
  EXPECT_TRUE(Says(server, "OFFLINE")) << server.log();
  EXPECT_GT(server.TakeId(), 0);
  EXPECT_EQ(server.PostAdmin("/v1/online").status, 200);
  EXPECT_TRUE(Announces(server, ServerPhase::kReady));
  EXPECT_TRUE(Says(server, "READY"));
}

// It reads the cluster again when the registry is there: it held no claim under the guess.
TEST_F(ZooKeeperServerTest, AFirstStartWithoutTheRegistryReplacesItsGuess) {
  const std::string cluster = "--registry=" + registry("-of-twitter");
  const Finished made = RunFirn({"init", "--brand-new", "--force", "--workers=4",
                                 "--layout=twitter", "--timeout_ms=30000", cluster});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  zookeeper_->KillAll();
  RunningServer server(dir_ / "state", {cluster, "--session_timeout_ms=2000"});
  ASSERT_TRUE(Eventually(kPatience, [&] { return server.Admin("/healthz").status == 200; }))
      << server.log();
  EXPECT_EQ(StatusOf(server).at("layout"), "firn");
  ASSERT_TRUE(zookeeper_->RestartAll().ok());
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(StatusOf(server).at("layout"), "twitter");
  EXPECT_GT(server.TakeId(), 0);
}

TEST_F(ZooKeeperServerTest, TheAuditListsAServerThatCannotClaim) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  server.process().Signal(SIGTERM);
  ASSERT_EQ(server.process().Wait(kPatience), 0) << server.log();
  RememberAnotherCluster();
  server.StartAgain();
  const std::string remedy = "--state_dir";
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const Json audit = Audit();
    return JsonText(audit.at("faults")).find(remedy) != std::string::npos;
  })) << Audit();
  const std::string readiness = server.Admin("/readyz").body;
  EXPECT_NE(readiness.find(remedy), std::string::npos) << readiness;
  EXPECT_NE(server.log().find("\nW"), std::string::npos) << "a warning: " << server.log();
}

// A cluster whose nodes can only be written with the right credentials.
class GuardedZooKeeperServerTest : public ZooKeeperServerTest {
 protected:
  void SetUp() override {
    ASSERT_NE(zookeeper_, nullptr);
    Write("right", "firn:secret\n");
    Write("wrong", "firn:guess\n");
    const Finished made = FirnAs("right", {"init", "--brand-new", "--force", "--workers=4"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const Finished tag = FirnAs("right", {"tags", "create", "order", "strategy=segment"});
    ASSERT_EQ(tag.exit_code, 0) << tag.err;
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ / name) << text;
    std::filesystem::permissions(dir_ / name, static_cast<std::filesystem::perms>(0600));
  }
  std::string AuthFlag(const std::string& name) const {
    return "--registry_auth_file=" + (dir_ / name);
  }
  // An empty name means no credentials.
  Finished FirnAs(const std::string& name, std::vector<std::string> arguments) const {
    if (!name.empty()) arguments.push_back(AuthFlag(name));
    return Firn(std::move(arguments));
  }
  RunningServer ServerAs(const std::string& name, const std::string& state) {
    std::vector<std::string> flags{"--registry=" + registry(), "--session_timeout_ms=2000"};
    if (!name.empty()) flags.push_back(AuthFlag(name));
    return RunningServer(dir_ / state, std::move(flags));
  }
  static bool SaysThatItIsDenied(const RunningServer& server) {
    return Eventually(kPatience, [&] {
      return server.Admin("/v1/status").body.find("--registry_auth_file") != std::string::npos;
    });
  }
};

TEST_F(GuardedZooKeeperServerTest, ReportsWrongCredentialsAndUsesCorrectedOnes) {
  for (const std::string& name : {std::string("wrong"), std::string()}) {
    SCOPED_TRACE("credentials: '" + name + "'");
    RunningServer stranger = ServerAs(name, "state-of-" + name);
    EXPECT_TRUE(SaysThatItIsDenied(stranger)) << stranger.log();
    std::string readiness;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      readiness = stranger.Admin("/readyz").body;
      return readiness.find("--registry_auth_file") != std::string::npos;
    })) << readiness;
    EXPECT_TRUE(readiness.starts_with("NOT_READY\n")) << readiness;
    EXPECT_EQ(stranger.Get("/genid").status, 503);
    RunningServer::Answer segment;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      segment = stranger.Get("/v1/ids/order");
      return segment.body.find("does not permit") != std::string::npos;
    })) << segment.body;
    EXPECT_EQ(segment.status, 503) << segment.body;
  }
  RunningServer fixed = ServerAs("fixed", "fixed-state");
  EXPECT_FALSE(fixed.BecomesReady()) << "it must not run without the file";
  Write("fixed", "firn:guess");
  fixed.StartAgain();
  EXPECT_TRUE(SaysThatItIsDenied(fixed)) << fixed.log();
  Write("fixed", "firn:secret");
  fixed.Kill();
  fixed.StartAgain();
  ASSERT_TRUE(fixed.BecomesReady()) << fixed.log();
  EXPECT_EQ(fixed.Get("/genid").status, 200);
  // It is ready once it has the default tag; the first numbers of this tag may arrive later.
  EXPECT_TRUE(Eventually(kPatience, [&] { return fixed.Get("/v1/ids/order").status == 200; }));
}

struct AuthRow {
  const char* name;
  const char* text;
  int exit_code;
  const char* words;
};

TEST_F(GuardedZooKeeperServerTest, WritesRequireTheRightCredentialsAndReadsNone) {
  constexpr AuthRow kRows[] = {
      {"other_word", "firn:guess", 4, "does not permit"},
      {"other_user", "norn:secret", 4, "does not permit"},
      {"empty", "", 2, "user:password"},
      {"no_word", "firn:", 2, "user:password"},
      {"no_user", ":secret", 2, "user:password"},
      {"no_colon", "firn secret", 2, "user:password"},
  };
  for (const AuthRow& row : kRows) {
    Write(row.name, row.text);
    const Finished refused = FirnAs(row.name, {"tags", "set", "order", "step=50"});
    EXPECT_EQ(refused.exit_code, row.exit_code) << row.name << ": " << refused.err;
    EXPECT_NE(refused.err.find(row.words), std::string::npos) << row.name << ": " << refused.err;
  }
  EXPECT_EQ(FirnAs("", {"tags", "set", "order", "step=50"}).exit_code, 4);
  EXPECT_EQ(FirnAs("nowhere", {"tags", "set", "order", "step=50"}).exit_code, 4) << "no such file";
  EXPECT_EQ(FirnAs("", {"restore", "--set=workers=4"}).exit_code, 4);
  EXPECT_EQ(FirnAs("", {"audit"}).exit_code, 0) << "reading needs no credentials";
  EXPECT_EQ(FirnAs("right", {"tags", "set", "order", "step=50"}).exit_code, 0);
}

// Discovery only reads, so clients need no credentials.
TEST_F(GuardedZooKeeperServerTest, ClientsFindServersWithoutCredentials) {
  RunningServer server = ServerAs("right", "state");
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ASSERT_TRUE(Announces(server, ServerPhase::kReady));
  const Finished next = RunFirn({"next", "--registry=" + registry()});
  EXPECT_EQ(next.exit_code, 0) << next.err;
}

TEST_F(ZooKeeperServerTest, WaitsForAClusterThatIsCreatedLater) {
  std::vector<std::string> flags{"--registry=" + registry("-later")};
  RunningServer server(dir_ / "state", flags);
  ASSERT_TRUE(Says(server, "NOT_READY")) << server.log();
  EXPECT_EQ(server.Get("/genid").status, 503);
  const Finished made = RunFirn({"init", "--brand-new", "--force", "--workers=4", flags[0]});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_TRUE(server.BecomesReady()) << server.log();
}

}  // namespace
}  // namespace firn
