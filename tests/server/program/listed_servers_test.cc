// The list of servers, as three real ones on a real ZooKeeper return it.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

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

  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry_, "--timeout_ms=30000"});
  }

  // Returns a server's list; an empty object if it has none.
  static Json Told(const RunningServer& server) {
    const auto answer = server.Get("/v1/servers");
    return answer.status == 200 ? JsonOf(answer.body) : Json::object();
  }
  // Returns the list on which all servers agree, with its version, once `wanted` is true for it.
  std::optional<Json> AllTell(const std::function<bool(const Json&)>& wanted) {
    std::optional<Json> common;
    Eventually(kPatience, [&] {
      std::vector<Json> lists;
      for (const auto& server : servers_) {
        const Json told = Told(*server);
        if (!told.contains("servers") || !wanted(told)) return false;
        lists.push_back({{"version", told.at("version")}, {"servers", told.at("servers")}});
      }
      const bool same = std::all_of(lists.begin(), lists.end(),
                                    [&](const Json& list) { return list == lists[0]; });
      if (same) common = lists[0];
      return same;
    });
    return common;
  }
  Json EntryOf(const Json& list, size_t server) const {
    for (const Json& entry : list.at("servers")) {
      if (entry.at("address") == servers_[server]->address()) return entry;
    }
    return nullptr;
  }
  static bool AllReady(const Json& told) {
    return told.at("servers").size() == 3 &&
           std::all_of(told.at("servers").begin(), told.at("servers").end(),
                       [](const Json& entry) { return entry.at("state") == "READY"; });
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
  const Json one = Told(*servers_[0]);
  EXPECT_EQ(one.at("application"), "shop");
  EXPECT_EQ(one.at("cluster_uuid"),
            JsonOf(servers_[1]->Admin("/v1/status").body).at("cluster_uuid"));
  EXPECT_EQ(JsonOf(servers_[2]->Admin("/v1/servers").body).at("version"), one.at("version"));

  const auto raises = [&](const Json& before, std::vector<std::string> words,
                          const std::function<bool(const Json&)>& wanted) {
    const Finished done = Firn(std::move(words));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const auto after = AllTell(wanted);
    EXPECT_TRUE(after.has_value()) << Told(*servers_[0]);
    if (!after) return before;
    EXPECT_GT(NumberOf(after->at("version")), NumberOf(before.at("version")));
    return *after;
  };
  const std::string address = servers_[1]->address();
  const Json weighed = raises(*first, {"servers", "weight", address, "30"}, [&](const Json& told) {
    return EntryOf(told, 1).at("weight") == 30;
  });
  const Json offline = raises(weighed, {"servers", "offline", address}, [&](const Json& told) {
    const Json entry = EntryOf(told, 1);
    return entry.at("online") == false && entry.at("state") == "OFFLINE";
  });
  raises(offline, {"servers", "online", address},
         [&](const Json& told) { return EntryOf(told, 1).at("online") == true && AllReady(told); });
}

TEST_F(ListedServersTest, KeepsTheListWithItsAgeWhileZooKeeperIsUnreachable) {
  ASSERT_NO_FATAL_FAILURE(StartOnZooKeeper());
  const auto before = AllTell(AllReady);
  ASSERT_TRUE(before.has_value()) << Told(*servers_[0]) << servers_[0]->log();
  zookeeper_->KillAll();
  // Longer than the session timeout: an expired session must not empty the list either.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
      return Told(*server).at("age_ms").whole().value_or(0) > 6'000;
    });
  }));
  const auto away = AllTell([](const Json&) { return true; });
  EXPECT_EQ(away, before);
  ASSERT_TRUE(zookeeper_->RestartAll().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return std::all_of(servers_.begin(), servers_.end(), [](const auto& server) {
      return Told(*server).at("age_ms").whole().value_or(60'000) < 6'000;
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
  const auto after = AllTell([](const Json& told) { return told.at("servers").size() == 2; });
  ASSERT_TRUE(after.has_value()) << Told(*servers_[0]);
  EXPECT_GT(NumberOf(after->at("version")), NumberOf(first->at("version")));
}

TEST_F(ListedServersTest, ListsOnlyItselfWithoutARegistry) {
  ASSERT_NO_FATAL_FAILURE(Start(1, "static:5", {"--static_first_start"}));
  const auto first =
      AllTell([](const Json& told) { return told.at("servers").at(0).at("state") == "READY"; });
  ASSERT_TRUE(first.has_value()) << Told(*servers_[0]);
  EXPECT_EQ(first->at("servers").size(), 1u);
  EXPECT_EQ(first->at("servers").at(0).at("address"), servers_[0]->address());
  EXPECT_EQ(servers_[0]->PostAdmin("/v1/offline").status, 200);
  const auto offline =
      AllTell([](const Json& told) { return told.at("servers").at(0).at("online") == false; });
  ASSERT_TRUE(offline.has_value()) << Told(*servers_[0]);
  EXPECT_GT(NumberOf(offline->at("version")), NumberOf(first->at("version")));
}

}  // namespace
}  // namespace firn
