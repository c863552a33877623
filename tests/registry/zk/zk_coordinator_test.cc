#include "registry/zk/zk_coordinator.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/coordinator_client.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Kind = SessionEvent::Kind;

constexpr Milliseconds kSession{4000};
constexpr Milliseconds kLongSession{20'000};  // must not expire on a busy machine
constexpr Milliseconds kLimit{600};

// A real ZooKeeper, a client behind a proxy that can fail, and a directly connected client.
class ZkCoordinatorTest : public testing::Test {
 protected:
  void Start(int members = 1) {
    auto started = ZooKeeper::Start({.members = members});
    ASSERT_TRUE(started.ok()) << started.status();
    zk = std::move(*started);
    proxy = std::make_unique<TcpProxy>(zk->port(0));
    direct = Connect(zk->hosts());
    ASSERT_TRUE(direct->AwaitSession());
    ASSERT_TRUE(direct->PrepareRoot().ok());
    ASSERT_TRUE(direct->Create("/", "0").status.ok());
  }
  // Connects the client whose network may fail.
  void ConnectThroughProxy() {
    client = Connect("127.0.0.1:" + std::to_string(proxy->port()));
    ASSERT_TRUE(client->AwaitSession());
  }
  std::unique_ptr<CoordinatorClient> Connect(const std::string& hosts,
                                             const std::string& auth = "") {
    return std::make_unique<CoordinatorClient>(
        std::make_unique<ZkCoordinator>(ZkOptions{.hosts = hosts,
                                                  .root = "/firn/test",
                                                  .session_time = session_time,
                                                  .time_limit = kLimit,
                                                  .reopen_after = Milliseconds(100),
                                                  .auth = auth},
                                        SystemClock()));
  }
  // Restores the network, and closes the connection that lost bytes.
  void Heal() {
    client->events.clear();
    proxy->DropRequests(false);
    proxy->DropAnswers(false);
    proxy->Delay(Milliseconds(0));
    proxy->Refuse(false);
    proxy->Cut();
    ASSERT_TRUE(client->AwaitEvent(Kind::kConnected));
  }
  // Repeats the write until it succeeds.
  static Status SetWhenItCan(CoordinatorClient& who, const std::string& data) {
    Status status;
    who.Await([&] {
      status = who.Set("/", data, Write::kAnyVersion).status;
      return status.ok();
    });
    return status;
  }
  void TearDown() override {
    if (HasFailure() && zk != nullptr) zk->KeepFiles();
  }

  Milliseconds session_time = kSession;
  std::unique_ptr<ZooKeeper> zk;
  std::unique_ptr<TcpProxy> proxy;
  std::unique_ptr<CoordinatorClient> direct;
  std::unique_ptr<CoordinatorClient> client;
};

// --- answers ------------------------------------------------------------------------------------

TEST_F(ZkCoordinatorTest, ALostAnswerIsUnknownAndReadingBackShowsTheWrite) {
  Start();
  ConnectThroughProxy();
  proxy->DropAnswers(true);
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kUnknown);
  EXPECT_EQ(client->Read("/").code(), Code::kUnavailable);
  EXPECT_GT(proxy->dropped(), 0);
  Heal();
  ASSERT_TRUE(client->Sync().ok());
  EXPECT_EQ(client->Read("/")->data, "1");
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kConflict);
}

TEST_F(ZkCoordinatorTest, ALostRequestIsUnknownAndReadingBackShowsNothing) {
  Start();
  ConnectThroughProxy();
  proxy->DropRequests(true);
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kUnknown);
  EXPECT_GT(proxy->dropped(), 0);
  Heal();
  ASSERT_TRUE(client->Sync().ok());
  EXPECT_EQ(client->Read("/")->data, "0");
}

TEST_F(ZkCoordinatorTest, AnAnswerAfterTheTimeLimitIsDropped) {
  Start();
  ConnectThroughProxy();
  proxy->Delay(Milliseconds(500));  // in each direction, so the round trip exceeds the limit
  int answers = 0;
  (*client)->Multi({Write::Set("/", "1", 0)}, [&](const WriteOutcome& outcome) {
    EXPECT_EQ(outcome.status.code(), Code::kUnknown);
    ++answers;
  });
  ASSERT_TRUE(client->Await([&] { return answers == 1; }));
  ASSERT_TRUE(direct->Await([&] { return direct->Read("/")->data == "1"; }));
  proxy->Delay(Milliseconds(0));
  ASSERT_TRUE(client->Await([&] { return client->Read("/").ok(); }));
  EXPECT_EQ(answers, 1);
}

TEST_F(ZkCoordinatorTest, AbandonsASilentServerInTime) {
  Start();
  ConnectThroughProxy();
  zk->Stop(0);
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kUnknown);
  EXPECT_TRUE(client->AwaitEvent(Kind::kDisconnected));
  EXPECT_EQ(client->Set("/", "2", 0).status.code(), Code::kUnavailable);
  zk->Continue(0);
  EXPECT_TRUE(SetWhenItCan(*client, "3").ok());
}

TEST_F(ZkCoordinatorTest, ARetryingClientWaitsForAConnection) {
  Start();
  ConnectThroughProxy();
  client->RepeatWhileDisconnected();
  proxy->Refuse(true);
  ASSERT_TRUE(client->AwaitEvent(Kind::kDisconnected));
  proxy->Refuse(false);
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kOk);
  EXPECT_EQ(client->Read("/")->data, "1");
}

TEST_F(ZkCoordinatorTest, SendsNothingWhileDisconnected) {
  Start();
  ConnectThroughProxy();
  proxy->Refuse(true);
  ASSERT_TRUE(client->AwaitEvent(Kind::kDisconnected));
  EXPECT_EQ(client->Set("/", "1", 0).status.code(), Code::kUnavailable);
  EXPECT_EQ(client->List("/").code(), Code::kUnavailable);
  EXPECT_EQ(client->Sync().code(), Code::kUnavailable);
  Heal();
  EXPECT_EQ(client->Read("/")->data, "0");
}

// --- sessions -----------------------------------------------------------------------------------

TEST_F(ZkCoordinatorTest, AShortDisconnectionKeepsTheSessionAndItsNodes) {
  session_time = kLongSession;
  Start();
  ConnectThroughProxy();
  const int64_t session = (*client)->session();
  ASSERT_TRUE(client->Create("/live", "", Lifetime::kEphemeral).status.ok());
  client->events.clear();
  proxy->Cut();
  ASSERT_TRUE(client->AwaitEvent(Kind::kDisconnected));
  ASSERT_TRUE(client->AwaitEvent(Kind::kConnected));
  EXPECT_EQ((*client)->session(), session);
  EXPECT_FALSE(client->Heard(Kind::kExpired));
  EXPECT_EQ(client->Read("/live")->stat.ephemeral_owner, session);
}

TEST_F(ZkCoordinatorTest, AnExpiredSessionIsReplacedAndItsWatchesFire) {
  Start();
  ConnectThroughProxy();
  const int64_t session = (*client)->session();
  ASSERT_TRUE(client->Create("/live", "", Lifetime::kEphemeral).status.ok());
  ASSERT_TRUE(client->ReadAndWatch("/").ok());
  proxy->Refuse(true);
  ASSERT_TRUE(direct->Await([&] { return direct->Read("/live").code() == Code::kNotFound; }));
  Heal();
  EXPECT_TRUE(client->Heard(Kind::kExpired));
  EXPECT_NE((*client)->session(), session);
  EXPECT_EQ(client->notices, 1);
  EXPECT_TRUE(client->Create("/live", "", Lifetime::kEphemeral).status.ok());
}

TEST_F(ZkCoordinatorTest, ReportsAChangeDuringADisconnection) {
  Start();
  ConnectThroughProxy();
  ASSERT_TRUE(client->ReadAndWatch("/").ok());
  proxy->Refuse(true);
  ASSERT_TRUE(client->AwaitEvent(Kind::kDisconnected));
  ASSERT_TRUE(direct->Set("/", "1", 0).status.ok());
  Heal();
  EXPECT_TRUE(client->Await([&] { return client->notices == 1; }));
}

// --- the ensemble -------------------------------------------------------------------------------

TEST_F(ZkCoordinatorTest, AKilledLeaderCostsNoSession) {
  session_time = kLongSession;
  Start(3);
  const int64_t session = (*direct)->session();
  ASSERT_TRUE(direct->Create("/live", "", Lifetime::kEphemeral).status.ok());
  zk->Kill(*zk->Leader());
  ASSERT_TRUE(SetWhenItCan(*direct, "1").ok());
  EXPECT_EQ((*direct)->session(), session);
  EXPECT_EQ(direct->Read("/live")->stat.ephemeral_owner, session);
}

TEST_F(ZkCoordinatorTest, ReconnectsToAnEnsembleAfterAnOutage) {
  Start(3);
  zk->KillAll();
  ASSERT_TRUE(direct->AwaitEvent(Kind::kDisconnected));
  // The members die one after another, so the handle may connect to the next one and lose that
  // connection, too.
  const Code code = direct->Set("/", "1", 0).status.code();
  EXPECT_TRUE(code == Code::kUnavailable || code == Code::kUnknown) << CodeName(code);
  const BootMs long_enough = TestNow() + 2 * kSession + kSession;  // a second handle connects, too
  ASSERT_TRUE(direct->Await([&] { return TestNow() >= long_enough; }));
  ASSERT_TRUE(zk->RestartAll().ok());
  EXPECT_TRUE(SetWhenItCan(*direct, "2").ok());
}

TEST_F(ZkCoordinatorTest, DetectsAWipedEnsembleThroughASecondHandle) {
  Start();
  const int64_t session = (*direct)->session();
  ASSERT_TRUE(direct->ReadAndWatch("/").ok());
  direct->events.clear();
  ASSERT_TRUE(zk->Wipe().ok());
  ASSERT_TRUE(direct->AwaitEvent(Kind::kExpired));
  ASSERT_TRUE(direct->AwaitEvent(Kind::kConnected));
  EXPECT_NE((*direct)->session(), session);
  EXPECT_EQ(direct->notices, 1);
  EXPECT_EQ(direct->Read("/").code(), Code::kNotFound);
}

// The second handle's session advances the restored server, which may then accept the first
// handle's old session again. Users therefore check the data after every reconnection.
TEST_F(ZkCoordinatorTest, DetectsARestoredEnsembleAfterAReconnection) {
  Start();
  ASSERT_TRUE(zk->SaveData().ok());
  ASSERT_TRUE(SetWhenItCan(*direct, "1").ok());
  ASSERT_TRUE(direct->ReadAndWatch("/").ok());
  direct->events.clear();
  ASSERT_TRUE(zk->RestoreData().ok());
  ASSERT_TRUE(direct->AwaitEvent(Kind::kDisconnected));
  ASSERT_TRUE(direct->AwaitEvent(Kind::kConnected));
  EXPECT_EQ(direct->Read("/")->data, "0");
}

// The test waits less than two and a half of these session timeouts, so only the second handle's
// read of the root node can show that data were lost.
TEST_F(ZkCoordinatorTest, ReportsAWipedRegistryLongBeforeALongSessionEnds) {
  session_time = kLongSession;
  Start();
  ASSERT_TRUE(direct->ReadAndWatch("/").ok());
  direct->events.clear();
  ASSERT_TRUE(zk->Wipe().ok());
  ASSERT_TRUE(direct->AwaitEvent(Kind::kExpired));
  ASSERT_TRUE(direct->AwaitEvent(Kind::kConnected));
  EXPECT_EQ(direct->Read("/").code(), Code::kNotFound);
}

TEST_F(ZkCoordinatorTest, ReportsAnOlderRootNodeLongBeforeALongSessionEnds) {
  session_time = kLongSession;
  Start();
  ASSERT_TRUE(zk->SaveData().ok());
  // The second handle's sessions advance the restored servers. They must not accept the first
  // handle before the second one has read the root node.
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(SetWhenItCan(*direct, "1").ok());
  ASSERT_EQ(direct->Read("/")->data, "1");
  direct->events.clear();
  ASSERT_TRUE(zk->RestoreData().ok());
  ASSERT_TRUE(direct->AwaitEvent(Kind::kExpired));
  ASSERT_TRUE(direct->AwaitEvent(Kind::kConnected));
  EXPECT_EQ(direct->Read("/")->data, "0");
}

TEST_F(ZkCoordinatorTest, AServerThatReturnsWithItsDataKeepsTheSession) {
  session_time = kLongSession;
  Start();
  ASSERT_TRUE(direct->ReadAndWatch("/").ok());
  const int64_t session = (*direct)->session();
  direct->events.clear();
  zk->KillAll();
  ASSERT_TRUE(direct->AwaitEvent(Kind::kDisconnected));
  const BootMs probed = TestNow() + ZkCoordinator::kProbeAfter + ZkCoordinator::kProbeSpread;
  ASSERT_TRUE(direct->Await([&] { return TestNow() >= probed; }));
  ASSERT_TRUE(zk->RestartAll().ok());
  ASSERT_TRUE(direct->AwaitEvent(Kind::kConnected));
  EXPECT_EQ((*direct)->session(), session);
  EXPECT_FALSE(direct->Heard(Kind::kExpired));
}

// --- credentials and the end --------------------------------------------------------------------

TEST_F(ZkCoordinatorTest, NodesOfOneUserAreReadableByAllAndWritableByTheirOwner) {
  Start();
  auto owner = Connect(zk->hosts(), "firn:secret");
  auto other = Connect(zk->hosts(), "firn:guess");
  ASSERT_TRUE(owner->AwaitSession() && other->AwaitSession());
  ASSERT_TRUE(owner->Create("/guarded", "1").status.ok());
  ASSERT_TRUE(other->Sync().ok());
  EXPECT_EQ(other->Read("/guarded")->data, "1");
  const WriteOutcome denied = other->Multi({Write::Check("/", 0), Write::Set("/guarded", "2", 0)});
  EXPECT_EQ(denied.status.code(), Code::kDenied);
  EXPECT_EQ(denied.failed, 1);
  EXPECT_EQ(other->Create("/guarded/x", "").status.code(), Code::kDenied);
  EXPECT_TRUE(owner->Set("/guarded", "2", 0).status.ok());
}

TEST_F(ZkCoordinatorTest, ClosesUnderLoadAndOnADeadNetwork) {
  Start();
  for (const bool dead : {false, true, false, true}) {
    ConnectThroughProxy();
    int answers = 0;
    for (int i = 0; i < 500; ++i) {
      (*client)->Multi({Write::Set("/", "x", Write::kAnyVersion)},
                       [&](const WriteOutcome&) { ++answers; });
      (*client)->Read(
          "/", [&](const Result<Node>&) { ++answers; }, [] {});
    }
    ASSERT_TRUE(client->Await([&] { return answers > 10; }));
    proxy->DropRequests(dead);
    proxy->DropAnswers(dead);
    const int before = answers;
    client->Close();
    EXPECT_EQ(answers, before);
    proxy->DropRequests(false);
    proxy->DropAnswers(false);
    proxy->Cut();
  }
  EXPECT_TRUE(direct->Read("/").ok());
}

TEST_F(ZkCoordinatorTest, SharedPersistentNodesAreOpenToOtherClients) {
  Start();
  const auto at_root = [this](const std::string& auth) {
    auto opened = std::make_unique<CoordinatorClient>(std::make_unique<ZkCoordinator>(
        ZkOptions{.hosts = zk->hosts(), .root = "", .auth = auth, .shared = true}, SystemClock()));
    EXPECT_TRUE(opened->AwaitSession());
    return opened;
  };
  const auto owner = at_root("firn:secret"), other = at_root("");
  ASSERT_TRUE(owner->Create("/dubbo", "").status.ok());
  ASSERT_TRUE(owner->Create("/dubbo/own", "", Lifetime::kEphemeral).status.ok());
  EXPECT_TRUE(other->Create("/dubbo/other", "").status.ok());
  EXPECT_TRUE(other->Read("/dubbo/own").ok());
  EXPECT_EQ(other->Set("/dubbo/own", "x", Write::kAnyVersion).status.code(), Code::kDenied);
}

TEST_F(ZkCoordinatorTest, AForkedChildLeavesTheSessionToItsParent) {
  session_time = kLongSession;
  Start();
  ASSERT_TRUE(direct->Create("/live", "", Lifetime::kEphemeral).status.ok());
  const pid_t child = fork();
  if (child == 0) {
    const Code code = direct->Set("/", "child", 0).status.code();
    direct->Close();
    _exit(code == Code::kUnavailable ? 0 : 1);
  }
  int ending = 0;
  ASSERT_EQ(waitpid(child, &ending, 0), child);
  EXPECT_EQ(ending, 0);
  EXPECT_TRUE(direct->Set("/", "parent", 0).status.ok());
  EXPECT_EQ(direct->Read("/live")->stat.ephemeral_owner, (*direct)->session());
}

TEST_F(ZkCoordinatorTest, WaitsForAServerThatStartsLater) {
  Start();
  proxy->Refuse(true);
  client = Connect("127.0.0.1:" + std::to_string(proxy->port()));
  EXPECT_FALSE(client->AwaitSession(Milliseconds(300)));
  EXPECT_EQ((*client)->session(), 0);
  EXPECT_EQ(client->Read("/").code(), Code::kUnavailable);
  proxy->Refuse(false);
  EXPECT_TRUE(client->AwaitSession());
}

}  // namespace
}  // namespace firn
