// A client with the address of one server finds the others: real servers on a real ZooKeeper.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "client/client.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

class SeedClientTest : public testing::Test {
 protected:
  static constexpr int kServers = 3;

  void SetUp() override {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    registry_ = "zk://" + zookeeper_->hosts() + "/firn/seeds";
    const Finished made =
        Firn({"init", "--brand-new", "--force", "--workers=4", "--registry=" + registry_});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    for (int i = 0; i < kServers; ++i) StartServer();
    for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }

  void StartServer() {
    const std::string state = dir_ / std::to_string(servers_.size());
    servers_.push_back(std::make_unique<RunningServer>(
        state, std::vector<std::string>{"--registry=" + registry_, "--session_timeout_ms=4000"}));
  }
  static Finished Firn(std::vector<std::string> arguments, const std::string& environment = {}) {
    arguments.insert(arguments.begin(), BuiltProgram("firn"));
    if (!environment.empty()) arguments.insert(arguments.begin(), {"env", environment});
    return RunToEnd(arguments);
  }

  std::string Seed() const { return "firn://" + servers_[0]->address(); }
  std::unique_ptr<Client> Connect(const std::string& servers) const {
    return std::make_unique<Client>(ClientOptions{.servers = servers,
                                                  .deadline = Milliseconds(20'000),
                                                  .attempt_limit = Milliseconds(5'000)});
  }
  static std::vector<std::string> Known(const Client& client) {
    std::vector<std::string> addresses;
    for (const SeenServer& server : client.cluster().servers) {
      addresses.push_back(server.known.address);
    }
    return addresses;
  }
  // Whether the client knows exactly the servers with these numbers within the patience.
  bool Knows(const Client& client, const std::vector<size_t>& numbers) const {
    std::vector<std::string> wanted;
    for (const size_t number : numbers) wanted.push_back(servers_[number]->address());
    std::sort(wanted.begin(), wanted.end());
    return Eventually(kPatience, [&] {
      std::vector<std::string> known = Known(client);
      std::sort(known.begin(), known.end());
      return known == wanted;
    });
  }
  static bool GivesIds(Client& client, int count) {
    for (int i = 0; i < count; ++i) {
      const Result<int64_t> id = client.GetId("default");
      EXPECT_TRUE(id.ok()) << id.status();
      if (!id.ok()) return false;
    }
    return true;
  }

  TempDir dir_;
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::string registry_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
};

TEST_F(SeedClientTest, FindsAllServersFromOneThatMayEnd) {
  const auto client = Connect(Seed());
  EXPECT_TRUE(GivesIds(*client, 1)) << "at the first call";
  ASSERT_TRUE(Knows(*client, {0, 1, 2})) << servers_[0]->log();
  servers_[0]->Kill();
  EXPECT_TRUE(GivesIds(*client, 20));
  EXPECT_TRUE(Knows(*client, {1, 2}));
  StartServer();
  ASSERT_TRUE(servers_[3]->BecomesReady()) << servers_[3]->log();
  EXPECT_TRUE(Knows(*client, {1, 2, 3}));
  servers_[1]->Kill();
  servers_[2]->Kill();
  EXPECT_TRUE(GivesIds(*client, 20)) << "from a server that started after the client";
}

TEST_F(SeedClientTest, TheCacheServesWithoutZooKeeperAndTheSeed) {
  const std::string servers = Seed() + "?cache=" + (dir_ / "servers");
  {
    const auto client = Connect(servers);
    ASSERT_TRUE(Knows(*client, {0, 1, 2}));
    zookeeper_->KillAll();
    EXPECT_TRUE(GivesIds(*client, 20));
    EXPECT_TRUE(Knows(*client, {0, 1, 2}));
  }
  servers_[0]->Kill();
  const auto again = Connect(servers);
  EXPECT_TRUE(GivesIds(*again, 20)) << "its only seed has ended";
}

TEST_F(SeedClientTest, TheCommandReadsServersFromTheEnvironment) {
  const auto lists_all = [&](const Finished& finished) {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return std::all_of(servers_.begin(), servers_.end(), [&](const auto& server) {
      return finished.out.find(server->address()) != std::string::npos;
    });
  };
  // The seed reads a server that has just become ready within a second.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return lists_all(Firn({"servers", "--servers=" + Seed()}));
  }));
  EXPECT_TRUE(lists_all(Firn({"servers"}, "FIRN_SERVERS=" + Seed())));
  const Finished next = Firn({"next", "-n", "3"}, "FIRN_SERVERS=" + Seed());
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(std::count(next.out.begin(), next.out.end(), '\n'), 3) << next.out;
  EXPECT_TRUE(
      lists_all(Firn({"servers", "--registry=" + registry_}, "FIRN_SERVERS=firn://127.0.0.1:1")))
      << "a flag must override the environment";
}

}  // namespace
}  // namespace firn
