// Every server's admin-side view of the whole cluster, on a real ZooKeeper.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/url_encoding.h"
#include "common/json/json.h"
#include "registry/dubbo/dubbo_node.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

class ClusterViewTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    registry_ = "zk://" + zookeeper_->hosts() + "/firn/shown";
    Firn({"init", "--brand-new", "--force", "--workers=4"});
    Firn({"tags", "create", "order", "step=50"});
    for (int i = 0; i < 2; ++i) Start(std::to_string(i), Cat("--worker=", i));
  }
  static std::string Cat(const char* text, int number) { return text + std::to_string(number); }
  void Start(const std::string& folder, const std::string& flag) {
    servers_.push_back(std::make_unique<RunningServer>(
        dir_ / folder, std::vector<std::string>{"--registry=" + registry_, "--rack=0", flag,
                                                "--session_timeout_ms=4000"}));
    ASSERT_TRUE(servers_.back()->BecomesReady()) << servers_.back()->log();
  }
  Json Firn(const std::vector<std::string>& words) const {
    const Finished finished =
        RunFirn(words, {"--registry=" + registry_, "--timeout_ms=30000", "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.err << finished.out;
    return JsonOf(finished.out);
  }
  // Returns the answer once `wanted` is true for it.
  template <typename Wanted>
  Json Told(const RunningServer& server, const std::string& path, Wanted wanted) {
    Json told;
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             const auto answer = server.Admin(path);
                             if (answer.status != 200) return false;
                             told = JsonOf(answer.body);
                             return bool{wanted(told)};
                           }))
        << path << ": " << told << server.log();
    return told;
  }
  Json Told(const RunningServer& server, const std::string& path) {
    return Told(server, path, [](const Json&) { return true; });
  }
  // Returns the issuer of an id, as a server names it.
  Json HolderOf(const RunningServer& server, const std::string& id) {
    return Told(server, "/v1/who/" + id).at("holders").at(0);
  }
  // Creates the node that a consumer of io.firn.IdService creates.
  void RegisterConsumer(const std::string& url) {
    auto coordinator = OpenEnsemble(registry_, {}, SystemClock());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator ensemble(**coordinator, SystemClock());
    ASSERT_TRUE(ensemble.Connect(kPatience).ok());
    const std::string folder = DubboInterface{"io.firn.IdService", {}}.Folder("consumers");
    std::vector<Write> writes;
    for (size_t end = folder.find('/', 1); end != std::string::npos;
         end = folder.find('/', end + 1)) {
      writes.push_back(Write::Create(folder.substr(0, end), "", Lifetime::kPersistent));
    }
    writes.push_back(Write::Create(folder, "", Lifetime::kPersistent));
    writes.push_back(Write::Create(folder + "/" + UrlEncode(url), "", Lifetime::kPersistent));
    const WriteOutcome outcome = ensemble.Multi(writes);
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
  }
  static std::string IdOf(const RunningServer& server) {
    return JsonOf(server.Get("/v1/ids/default").body).at("ids").at(0).text();
  }

  TempDir dir_;
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::string registry_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
};

TEST_F(ClusterViewTest, EveryServerShowsTheWholeCluster) {
  for (const auto& server : servers_) {
    const Json audit = Told(*server, "/v1/audit", [](const Json& told) {
      return told.at("machines").size() == 2 && told.at("providers").size() == 2;
    });
    EXPECT_EQ(audit.at("slots"), 16);
    EXPECT_EQ(audit.at("faults"), Json::array());
    const Json command = Firn({"audit"});
    for (const char* key : {"machine", "owner", "nonce", "pid", "use", "endpoint"}) {
      EXPECT_EQ(audit.at("machines").at(1).at(key), command.at("machines").at(1).at(key)) << key;
    }
    const Json tags =
        Told(*server, "/v1/tags", [](const Json& told) { return told.at("tags").size() == 2; });
    EXPECT_EQ(tags.at("tags").at(1).at("step"), "50");
  }
}

TEST_F(ClusterViewTest, ListsDubboConsumersAsTheCommandDoes) {
  EXPECT_EQ(Told(*servers_[0], "/v1/consumers").at("consumers"), Json::array());
  RegisterConsumer("consumer://10.0.0.9/io.firn.IdService?application=shop&pid=7&release=3.3.2");
  const Json shown = Told(*servers_[0], "/v1/consumers",
                          [](const Json& told) { return !told.at("consumers").empty(); });
  EXPECT_EQ(shown.at("consumers"), Firn({"servers", "--consumers"}).at("consumers"));
  EXPECT_EQ(shown.at("consumers").at(0), (Json{{"interface", "io.firn.IdService"},
                                               {"host", "10.0.0.9"},
                                               {"application", "shop"},
                                               {"pid", "7"},
                                               {"dubbo", "3.3.2"}}));
}

TEST_F(ClusterViewTest, NamesTheIssuerOfAnIdAfterItsServerEnded) {
  const std::string id = IdOf(*servers_[1]);
  const Json holder = HolderOf(*servers_[0], id);
  EXPECT_EQ(holder.at("pid"), servers_[1]->process().pid());
  EXPECT_EQ(holder.at("present"), true);
  EXPECT_EQ(holder.at("owner"), Firn({"who", id}).at(0).at("holders").at(0).at("owner"));

  // Another server takes the machine id; the map has both.
  servers_[1]->process().Signal(SIGTERM);
  ASSERT_EQ(servers_[1]->process().Wait(kPatience), 0) << servers_[1]->log();
  Start("successor", "--worker=1");
  const Json audit = Told(*servers_[0], "/v1/audit", [](const Json& told) {
    return told.at("machines").at(1).contains("past");
  });
  EXPECT_EQ(audit.at("machines").at(1).at("past").at(0).at("pid"), holder.at("pid"));
  EXPECT_NE(audit.at("machines").at(1).at("pid"), holder.at("pid"));
  EXPECT_EQ(HolderOf(*servers_[0], id).at("pid"), holder.at("pid"));
}

TEST_F(ClusterViewTest, KeepsTheLastReadingWithoutZooKeeper) {
  Told(*servers_[0], "/v1/audit", [](const Json& told) { return told.at("machines").size() == 2; });
  zookeeper_->KillAll();
  const Json audit =
      Told(*servers_[0], "/v1/audit", [](const Json& told) { return told.contains("trouble"); });
  EXPECT_EQ(audit.at("machines").size(), 2U);
  EXPECT_EQ(servers_[1]->Admin("/v1/audit").status, 503);
  // The server's end must not wait for ZooKeeper.
  servers_[0]->process().Signal(SIGTERM);
  EXPECT_EQ(servers_[0]->process().Wait(kPatience), 0) << servers_[0]->log();
}

}  // namespace
}  // namespace firn
