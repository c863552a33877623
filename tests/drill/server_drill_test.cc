// Tests whole servers and their clients, on a real ZooKeeper.

#include <cstdio>
#include <memory>
#include <vector>

#include "tests/drill/callers/awkward_readers.h"
#include "tests/drill/callers/reconnecting_client.h"
#include "tests/drill/claimant/oracle.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"

namespace firn {
namespace {

class ServerDrill : public Drill {
 protected:
  void StartServers(int count) {
    StartEnsemble(1);
    for (int i = 0; i < count; ++i) {
      const std::vector<std::string> flags{"--registry=" + registry(), "--session_timeout_ms=2000"};
      servers_.push_back(
          std::make_unique<RunningServer>(folder("server" + std::to_string(i)), flags));
    }
    for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }

  void StartClients(size_t count) {
    std::vector<int> ports;
    for (const auto& server : servers_) ports.push_back(server->port());
    for (size_t i = 0; i < count; ++i) {
      clients_.push_back(std::make_unique<ReconnectingClient>(ports, i));
    }
    awkward_ = std::make_unique<AwkwardReaders>(ports);
    ASSERT_TRUE(AllGetMore());
  }

  // Waits until each client gets ids from some server.
  bool AllGetMore(int64_t calls = 50) {
    return awkward_->AllGetMore(clients_, &ReconnectingClient::calls, calls);
  }

  // Restarts the server. Returns the time from exec until /readyz reports that it is ready.
  Milliseconds StartAgain(RunningServer& server) {
    const BootMs exec = TestNow();
    server.StartAgain();
    EXPECT_TRUE(server.BecomesReady()) << server.log();
    return TestNow() - exec;
  }

  // Prints the results of all clients, and checks that no id was issued twice.
  void JudgeClients() {
    ReconnectingClient::Counts sum;
    DuplicateOracle oracle(Layout::Firn());
    awkward_->Stop();
    const int64_t read_awkwardly = awkward_->Confess(oracle);
    EXPECT_GT(read_awkwardly, 0);
    for (size_t i = 0; i < clients_.size(); ++i) {
      ReconnectingClient& client = *clients_[i];
      client.Stop();
      for (const std::string& failure : client.failures()) ADD_FAILURE() << failure;
      for (const IssuedRun& run : client.runs()) {
        ASSERT_TRUE(oracle.Add("client" + std::to_string(i), run).ok());
      }
      sum.calls += client.counts().calls;
      sum.failed += client.counts().failed;
      sum.refused += client.counts().refused;
      sum.lost += client.counts().lost;
      sum.unreachable += client.counts().unreachable;
      sum.longest_call = std::max(sum.longest_call, client.counts().longest_call);
    }
    const DuplicateOracle::Findings found = oracle.Judge();
    EXPECT_EQ(found.ids, sum.calls + read_awkwardly);
    EXPECT_EQ(found.duplicates, 0) << found.first_duplicate;
    EXPECT_EQ(sum.failed, 0);
    std::printf(
        "drill %s: calls %lld, failed %lld, ids of awkward readers %lld, duplicates %lld; told to "
        "go elsewhere %lld, "
        "connections "
        "closed before an answer %lld, not reached %lld, longest call %lld ms%s\n",
        testing::UnitTest::GetInstance()->current_test_info()->name(),
        static_cast<long long>(sum.calls), static_cast<long long>(sum.failed),
        static_cast<long long>(read_awkwardly), static_cast<long long>(found.duplicates),
        static_cast<long long>(sum.refused), static_cast<long long>(sum.lost),
        static_cast<long long>(sum.unreachable), static_cast<long long>(sum.longest_call.count()),
        figures().c_str());
  }

  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::vector<std::unique_ptr<ReconnectingClient>> clients_;
  std::unique_ptr<AwkwardReaders> awkward_;
};

TEST_F(ServerDrill, RollingRestartFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(StartServers(3));
  ASSERT_NO_FATAL_FAILURE(StartClients(4));
  for (const auto& server : servers_) {
    server->process().Signal(SIGTERM);
    ASSERT_EQ(server->process().Wait(kPatience), 0) << server->log();
    EXPECT_TRUE(AllGetMore()) << "from the remaining two";
    Figure("ready after", StartAgain(*server));
    EXPECT_TRUE(AllGetMore());
  }
  JudgeClients();
}

TEST_F(ServerDrill, KilledServersRepeatNoId) {
  ASSERT_NO_FATAL_FAILURE(StartServers(3));
  ASSERT_NO_FATAL_FAILURE(StartClients(4));
  for (const auto& server : servers_) {
    server->Kill();
    EXPECT_TRUE(AllGetMore()) << "from the remaining two";
    Figure("ready after", StartAgain(*server));
    EXPECT_TRUE(AllGetMore());
  }
  JudgeClients();
}

// Measures the time of a server from exec to ready, with ZooKeeper running: at the first start,
// after a clean stop, and after a kill.
TEST_F(ServerDrill, MeasuresTheTimeOfAStart) {
  StartEnsemble(1);
  RunningServer server(folder("server"), {"--registry=" + registry()});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  for (int i = 0; i < 5; ++i) {
    server.process().Signal(SIGTERM);
    ASSERT_EQ(server.process().Wait(kPatience), 0) << server.log();
    Figure("after a clean end", StartAgain(server));
  }
  for (int i = 0; i < 5; ++i) {
    server.Kill();
    Figure("after a kill", StartAgain(server));
  }
  std::printf("drill MeasuresTheTimeOfAStart: exec to ready%s\n", figures().c_str());
}

}  // namespace
}  // namespace firn
