// Tests a client whose servers are registered in a real ZooKeeper.

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "client/lease_sender.h"
#include "client/source/list_cache.h"
#include "client/source/registry_source.h"
#include "tests/client/client_rig.h"
#include "tests/client/lease/awaited_outcomes.h"
#include "tests/client/source/announcer.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

constexpr Milliseconds kOperatorsSession{60'000};

class RegistryClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zk_ = *std::move(started);
    operator_ = std::make_unique<Announcer>(Registry(zk_->port(0)), kOperatorsSession);
    uuid_ = operator_->MakeCluster();
    for (FakeServer* server : rig_.servers()) server->BelongTo(uuid_);
    rig_.options.servers_max = 0;
  }
  void TearDown() override {
    rig_.DropClient();
    operator_.reset();
    if (HasFailure() && zk_ != nullptr) zk_->KeepFiles();
  }

  static std::string Registry(int port) {
    return "zk://127.0.0.1:" + std::to_string(port) + "/firn/shop";
  }
  void FindServersIn(const std::string& registry) {
    rig_.options.servers = registry;
    rig_.options.open_source =
        RegistrySources({.cache_file = cache_, .session_time = Milliseconds(2000)});
  }
  bool Knows(size_t servers) {
    return Eventually(kPatience, [&] { return rig_.client().cluster().servers.size() == servers; });
  }

  TempDir folder_;
  const std::string cache_ = folder_ / "servers";
  std::unique_ptr<ZooKeeper> zk_;
  std::unique_ptr<Announcer> operator_;
  std::string uuid_;
  ClientRig rig_{2};
};

TEST_F(RegistryClientTest, UsesTheCachedListWhileZooKeeperIsDown) {
  const std::string registry = Registry(zk_->port(0));
  FindServersIn(registry);
  for (FakeServer* server : rig_.servers()) operator_->Add(server->address());
  ASSERT_TRUE(Knows(2));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const auto kept = ListCache(cache_, registry).Read();
    return kept.ok() && kept->servers.size() == 2;
  }));
  rig_.DropClient();
  operator_.reset();
  zk_->Kill(0);

  // The second server's address now belongs to another cluster.
  rig_.server(1).Behave(Kind::kForeign);
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return rig_.GetId().ok() && rig_.View(rig_.server(1)).health == ServerHealth::kQuarantined;
  }));
  EXPECT_TRUE(rig_.client().cluster().from_cache);
  EXPECT_EQ(rig_.client().cluster().cluster.uuid, uuid_);
  EXPECT_EQ(rig_.server(1).requests(), 0);

  ASSERT_TRUE(zk_->Restart(0).ok());
  ASSERT_TRUE(zk_->AwaitReady().ok());
  operator_ = std::make_unique<Announcer>(registry, kOperatorsSession);
  operator_->Add("127.0.0.1:1");
  EXPECT_TRUE(Eventually(kPatience, [this] { return !rig_.client().cluster().from_cache; }));
}

// A lease's id is a secret, so a server that ZooKeeper does not list gets no request.
TEST_F(RegistryClientTest, ARenewalFollowsToAnotherServerOnceZooKeeperListsIt) {
  rig_.server(0).BehaveAboutLeases(
      {.answer = FakeLeases::Answer::kAnotherServers, .server = rig_.server(1).address()});
  operator_->Add(rig_.server(0).address());
  FindServersIn(Registry(zk_->port(0)));
  const auto outcomes = std::make_shared<AwaitedOutcomes>();
  const auto engine = client::Engine::Open(rig_.options)->shared_from_this();
  engine->Close();
  client::LeaseSender sender(engine);
  uint64_t number = 0;
  const auto renew = [&] {
    sender.Send(++number,
                {.kind = LeaseRequest::Kind::kRenew,
                 .clock = SystemClock().Wall(),
                 .ahead = Milliseconds(60'000),
                 .lease = "L",
                 .server = rig_.server(0).address(),
                 .turn = std::string(32, 'a')},
                outcomes);
    return outcomes->Await(number);
  };

  LeaseOutcome outcome;
  ASSERT_TRUE(Eventually(kPatience, [&] {
    outcome = renew();
    return outcome.status.message().find("which the server list does not name") !=
           std::string::npos;
  })) << outcome.status;
  EXPECT_EQ(outcome.kind, LeaseOutcome::Kind::kNoAnswer);
  EXPECT_TRUE(rig_.server(1).LeaseRequests().empty());

  operator_->Add(rig_.server(1).address());
  ASSERT_TRUE(Eventually(kPatience, [&] {
    outcome = renew();
    return outcome.kind == LeaseOutcome::Kind::kTerms;
  })) << outcome.status;
  EXPECT_EQ(outcome.terms.server, rig_.server(1).address());
  EXPECT_FALSE(rig_.server(1).LeaseRequests().empty());
}

// --- the session expires -------------------------------------------------------------------------

class ExpiryTest : public RegistryClientTest {
 protected:
  // Returns the sessions that ZooKeeper considers alive.
  int Sessions() const {
    const std::string said = zk_->Ask(0, "mntr");
    const std::string key = "zk_global_sessions\t";
    const size_t at = said.find(key);
    return at == std::string::npos ? -1 : std::atoi(said.c_str() + at + key.size());
  }
  bool Holds(int sessions) {
    return Eventually(kPatience, [&] { return Sessions() == sessions; });
  }

  // Runs threads that call continuously. Returns the number of calls that failed before `happen`
  // returned.
  template <typename Happen>
  int64_t FailedMeanwhile(Happen happen) {
    std::atomic<int64_t> calls{0}, failed{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); ++calls) {
          failed += rig_.client().GetId("order").ok() ? 0 : 1;
          SleepBriefly();
        }
      });
    }
    happen();
    const int64_t before = calls;
    EXPECT_TRUE(Eventually(kPatience, [&] { return calls > before + 10; }));
    return failed;
  }
};

TEST_F(ExpiryTest, AnExpiredSessionFailsNoCallAndTheNextOneFollowsTheServers) {
  TcpProxy proxy(zk_->port(0));
  ASSERT_TRUE(Holds(1)) << "the operator's";
  operator_->Add(rig_.server(0).address());
  FindServersIn(Registry(proxy.port()));
  ASSERT_TRUE(Knows(1));
  ASSERT_TRUE(Holds(2));
  const int64_t failed = FailedMeanwhile([&] {
    proxy.Refuse(true);
    ASSERT_TRUE(Holds(1)) << "the client's session has expired";
    operator_->Add(rig_.server(1).address());
    proxy.Refuse(false);
    EXPECT_TRUE(Knows(2));
  });
  EXPECT_EQ(failed, 0);
  EXPECT_TRUE(Holds(2)) << "a session of its own again";
}

}  // namespace
}  // namespace firn
