// The list of servers, as three real ones on a real ZooKeeper return it.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using AnyJson = nlohmann::json;

class ListedServersTest : public testing::Test {
 protected:
  void Start(int count, const std::string& registry, std::vector<std::string> flags = {}) {
    registry_ = registry;
    flags.insert(flags.end(), {"--registry=" + registry, "--application=shop"});
    for (int i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<RunningServer>(dir_ / std::to_string(i), flags));
    }
    for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }
  void StartOnZooKeeper() {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    registry_ = "zk://" + zookeeper_->hosts() + "/firn/listed";
    const Finished made = Firn({"init", "--brand-new", "--force", "--workers=4"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    Start(3, registry_, {"--session_timeout_ms=4000"});
  }

  Finished Firn(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), BuiltProgram("firn"));
    arguments.push_back("--registry=" + registry_);
    arguments.push_back("--timeout_ms=30000");
    return RunToEnd(arguments);
  }

  // Returns a server's list; an empty object if it has none.
  static AnyJson Told(const RunningServer& server) {
    const auto answer = server.Get("/v1/servers");
    return answer.status == 200 ? AnyJson::parse(answer.body) : AnyJson::object();
  }
  // Returns the list on which all servers agree, with its version, once `wanted` is true for it.
  std::optional<AnyJson> AllTell(const std::function<bool(const AnyJson&)>& wanted) {
    std::optional<AnyJson> common;
    Eventually(kPatience, [&] {
      std::vector<AnyJson> lists;
      for (const auto& server : servers_) {
        const AnyJson told = Told(*server);
        if (!told.contains("servers") || !wanted(told)) return false;
        lists.push_back({{"version", told["version"]}, {"servers", told["servers"]}});
      }
      const bool same = std::all_of(lists.begin(), lists.end(),
                                    [&](const AnyJson& list) { return list == lists[0]; });
      if (same) common = lists[0];
      return same;
    });
    return common;
  }
  AnyJson EntryOf(const AnyJson& list, size_t server) const {
    for (const AnyJson& entry : list.at("servers")) {
      if (entry.at("address") == servers_[server]->address()) return entry;
    }
    return nullptr;
  }
  static bool AllReady(const AnyJson& told) {
    return told["servers"].size() == 3 &&
           std::all_of(told["servers"].begin(), told["servers"].end(),
                       [](const AnyJson& entry) { return entry["state"] == "READY"; });
  }

  TempDir dir_;
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::string registry_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
};

TEST_F(ListedServersTest, AllServersReturnTheSameListAndVersion) {
  ASSERT_NO_FATAL_FAILURE(StartOnZooKeeper());
  const auto first = AllTell(AllReady);
  ASSERT_TRUE(first.has_value()) << Told(*servers_[0]) << servers_[0]->log();
  const AnyJson one = Told(*servers_[0]);
  EXPECT_EQ(one["application"], "shop");
  EXPECT_EQ(one["cluster_uuid"],
            AnyJson::parse(servers_[1]->Admin("/v1/status").body)["cluster_uuid"]);
  EXPECT_EQ(AnyJson::parse(servers_[2]->Admin("/v1/servers").body)["version"], one["version"]);

  const auto raises = [&](const AnyJson& before, std::vector<std::string> words,
                          const std::function<bool(const AnyJson&)>& wanted) {
    const Finished done = Firn(std::move(words));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto after = AllTell(wanted);
    EXPECT_TRUE(after.has_value()) << Told(*servers_[0]);
    if (!after) return before;
    EXPECT_GT((*after)["version"], before["version"]);
    return *after;
  };
  const std::string address = servers_[1]->address();
  const AnyJson weighed =
      raises(*first, {"servers", "weight", address, "30"},
             [&](const AnyJson& told) { return EntryOf(told, 1)["weight"] == 30; });
  const AnyJson offline =
      raises(weighed, {"servers", "offline", address}, [&](const AnyJson& told) {
        const AnyJson entry = EntryOf(told, 1);
        return entry["online"] == false && entry["state"] == "OFFLINE";
      });
  raises(offline, {"servers", "online", address},
         [&](const AnyJson& told) { return EntryOf(told, 1)["online"] == true && AllReady(told); });
}

TEST_F(ListedServersTest, KeepsTheListWithItsAgeWhileZooKeeperIsUnreachable) {
  ASSERT_NO_FATAL_FAILURE(StartOnZooKeeper());
  const auto before = AllTell(AllReady);
  ASSERT_TRUE(before.has_value()) << Told(*servers_[0]) << servers_[0]->log();
  zookeeper_->KillAll();
  // Longer than the session timeout: an expired session must not empty the list either.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return std::all_of(servers_.begin(), servers_.end(),
                       [](const auto& server) { return Told(*server).value("age_ms", 0) > 6'000; });
  }));
  const auto away = AllTell([](const AnyJson&) { return true; });
  EXPECT_EQ(away, before);
  ASSERT_TRUE(zookeeper_->RestartAll().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
      return Told(*server).value("age_ms", 60'000) < 6'000;
    });
  }));
  EXPECT_TRUE(AllTell(AllReady).has_value());
}

TEST_F(ListedServersTest, ListsNeighboursInADirectoryRegistry) {
  ASSERT_NO_FATAL_FAILURE(Start(3, "dir://" + (dir_ / "registry")));
  const auto first = AllTell(AllReady);
  ASSERT_TRUE(first.has_value()) << Told(*servers_[0]) << servers_[0]->log();
  servers_[2]->Kill();
  servers_.pop_back();
  const auto after = AllTell([](const AnyJson& told) { return told["servers"].size() == 2; });
  ASSERT_TRUE(after.has_value()) << Told(*servers_[0]);
  EXPECT_GT((*after)["version"], (*first)["version"]);
}

TEST_F(ListedServersTest, ListsOnlyItselfWithoutARegistry) {
  ASSERT_NO_FATAL_FAILURE(Start(1, "static:5", {"--static_first_start"}));
  const auto first =
      AllTell([](const AnyJson& told) { return told["servers"][0]["state"] == "READY"; });
  ASSERT_TRUE(first.has_value()) << Told(*servers_[0]);
  EXPECT_EQ((*first)["servers"].size(), 1u);
  EXPECT_EQ((*first)["servers"][0]["address"], servers_[0]->address());
  EXPECT_EQ(servers_[0]->PostAdmin("/v1/offline").status, 200);
  const auto offline =
      AllTell([](const AnyJson& told) { return told["servers"][0]["online"] == false; });
  ASSERT_TRUE(offline.has_value()) << Told(*servers_[0]);
  EXPECT_GT((*offline)["version"], (*first)["version"]);
}

}  // namespace
}  // namespace firn
