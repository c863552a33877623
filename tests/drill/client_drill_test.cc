// Tests the client library under a load of 8 threads, while one of three real servers has a fault.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/source/registry_source.h"
#include "tests/drill/callers/awkward_readers.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

// The results of one thread's calls.
struct Got {
  std::vector<int64_t> ids;
  std::atomic<int64_t> calls = 0;
  int64_t failed = 0;
  Status first_failure;
  Milliseconds longest_call{0};
  std::string longest_was;  // attempts of the longest call
};

std::string TextOf(const CallReport& report) {
  std::string text;
  for (const CallAttempt& attempt : report.attempts) {
    text += (text.empty() ? "" : "; ") + attempt.ToString();
  }
  return text;
}

class ClientDrill : public Drill {
 protected:
  static constexpr size_t kThreads = 8;

  // Returns the timeout of an attempt. It is long, so that a healthy server's answer on a busy
  // machine arrives in time. FIRN_DRILL_ATTEMPT_MS=80 sets the default of the client.
  static Milliseconds AttemptLimit() {
    const char* text = std::getenv("FIRN_DRILL_ATTEMPT_MS");
    return Milliseconds(text == nullptr ? 2'000 : std::atoi(text));
  }

  void StartServers() {
    if (registry().empty()) MakeDirectoryCluster();
    for (int i = 0; i < 3; ++i) {
      const std::vector<std::string> flags{"--registry=" + registry()};
      servers_.push_back(
          std::make_unique<RunningServer>(folder("server" + std::to_string(i)), flags));
    }
    for (const auto& server : servers_) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }

  // Starts the client with servers from the registry or from a list.
  void StartClient(const std::string& servers) {
    client_ = std::make_unique<Client>(ClientOptions{.servers = servers,
                                                     .open_source = RegistrySources(),
                                                     .deadline = 10 * AttemptLimit(),
                                                     .attempt_limit = AttemptLimit()});
    ASSERT_TRUE(client_->status().ok()) << client_->status();
    // A server is ready before it is listed, and a first list may be incomplete.
    ASSERT_TRUE(client_->GetId("default").ok());
    ASSERT_TRUE(Eventually(
        kPatience, [this] { return client_->cluster().servers.size() == servers_.size(); }));
    for (size_t i = 0; i < kThreads; ++i) {
      Got& got = *got_.emplace_back(std::make_unique<Got>());
      threads_.emplace_back([this, &got](const std::stop_token& stop) { Ask(stop, got); });
    }
    std::vector<int> ports;
    for (const auto& server : servers_) ports.push_back(server->port());
    awkward_ = std::make_unique<AwkwardReaders>(ports);
    ASSERT_TRUE(AllGetMore());
  }

  void Ask(const std::stop_token& stop, Got& got) {
    while (!stop.stop_requested()) {
      CallReport report;
      const BootMs began = TestNow();
      const Result<int64_t> id = client_->GetId("default", {.report = &report});
      if (const Milliseconds took = TestNow() - began; took > got.longest_call) {
        got.longest_call = took;
        got.longest_was = TextOf(report);
      }
      if (id.ok()) {
        got.ids.push_back(*id);
      } else if (got.failed++ == 0) {
        got.first_failure = id.status();
      }
      ++got.calls;
    }
  }

  bool AllGetMore(int64_t calls = 50) { return awkward_->AllGetMore(got_, &Got::calls, calls); }

  // Returns the number of this server's answers to the client.
  uint64_t AnswersOf(const std::string& address) {
    for (const SeenServer& view : client_->cluster().servers) {
      if (view.known.address == address) return view.answered;
    }
    return 0;
  }

  // Whether the client still calls this server.
  bool IsAsked(const std::string& address) {
    const uint64_t before = AnswersOf(address);
    return Eventually(kPatience, [&] { return AnswersOf(address) > before; });
  }

  // Returns a list of the three servers, of which the first is behind the proxy.
  std::string ListThrough(const std::string& proxy) const {
    return "list://" + proxy + "," + servers_[1]->address() + "," + servers_[2]->address();
  }

  void JudgeClient() {
    threads_.clear();
    awkward_->Stop();
    std::vector<int64_t> ids = awkward_->ids();
    EXPECT_FALSE(ids.empty());
    const Got* longest = got_.front().get();
    for (const auto& got : got_) {
      EXPECT_EQ(got->failed, 0) << got->first_failure;
      ids.insert(ids.end(), got->ids.begin(), got->ids.end());
      if (got->longest_call > longest->longest_call) longest = got.get();
    }
    std::sort(ids.begin(), ids.end());
    const auto once = std::unique(ids.begin(), ids.end());
    EXPECT_EQ(std::distance(once, ids.end()), 0) << "ids were issued twice";
    const ClientCounters counters = client_->counters();
    std::printf(
        "drill %s: ids %zu, duplicates %lld, retries %llu, time-outs %llu, longest call "
        "%lld ms (%s) at an attempt limit of %lld ms%s\n",
        testing::UnitTest::GetInstance()->current_test_info()->name(), ids.size(),
        static_cast<long long>(std::distance(once, ids.end())),
        static_cast<unsigned long long>(counters.retries),
        static_cast<unsigned long long>(counters.timeouts),
        static_cast<long long>(longest->longest_call.count()), longest->longest_was.c_str(),
        static_cast<long long>(AttemptLimit().count()), figures().c_str());
    client_.reset();
  }

  RunningServer& first() { return *servers_[0]; }

  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::unique_ptr<Client> client_;
  std::vector<std::unique_ptr<Got>> got_;
  std::vector<std::jthread> threads_;
  std::unique_ptr<AwkwardReaders> awkward_;
};

TEST_F(ClientDrill, AKilledServerFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(StartServers());
  ASSERT_NO_FATAL_FAILURE(StartClient(registry()));
  first().Kill();
  EXPECT_TRUE(AllGetMore(200));
  first().StartAgain();
  ASSERT_TRUE(first().BecomesReady()) << first().log();
  EXPECT_TRUE(IsAsked(first().address())) << "it is used again";
  JudgeClient();
}

// Uses a real ensemble, because in a directory registry, a server that is paused while it holds the
// lock would block all others.
TEST_F(ClientDrill, APausedServerFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(StartEnsemble(1));
  ASSERT_NO_FATAL_FAILURE(StartServers());
  ASSERT_NO_FATAL_FAILURE(StartClient(registry()));
  first().process().Pause();
  EXPECT_TRUE(Eventually(kPatience, [this] { return client_->counters().timeouts > 0; }));
  EXPECT_TRUE(AllGetMore(200));
  first().process().Resume();
  EXPECT_TRUE(IsAsked(first().address())) << "it is used again";
  JudgeClient();
}

TEST_F(ClientDrill, ADrainedServerFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(StartServers());
  ASSERT_NO_FATAL_FAILURE(StartClient(registry()));
  first().process().Signal(SIGTERM);
  ASSERT_EQ(first().process().Wait(kPatience), 0) << first().log();
  EXPECT_TRUE(AllGetMore(200));
  first().StartAgain();
  ASSERT_TRUE(first().BecomesReady()) << first().log();
  EXPECT_TRUE(IsAsked(first().address())) << "it is used again";
  JudgeClient();
}

TEST_F(ClientDrill, ACutOffServerFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(StartServers());
  TcpProxy proxy(first().port());
  const std::string through = "127.0.0.1:" + std::to_string(proxy.port());
  ASSERT_NO_FATAL_FAILURE(StartClient(ListThrough(through)));
  proxy.DropAnswers(true);
  EXPECT_TRUE(Eventually(kPatience, [this] { return client_->counters().timeouts > 0; }));
  EXPECT_TRUE(AllGetMore(200));
  EXPECT_GT(proxy.dropped(), 0);
  // No connection of which answers were dropped may deliver later ones.
  proxy.Refuse(true);
  ASSERT_TRUE(Eventually(kPatience, [&] { return proxy.connections() == 0; }));
  proxy.DropAnswers(false);
  proxy.Refuse(false);
  EXPECT_TRUE(IsAsked(through)) << "it is used again";
  JudgeClient();
}

TEST_F(ClientDrill, ASlowServerGetsFewerCalls) {
  ASSERT_NO_FATAL_FAILURE(StartServers());
  TcpProxy proxy(first().port());
  const std::string slow = "127.0.0.1:" + std::to_string(proxy.port());
  ASSERT_NO_FATAL_FAILURE(StartClient(ListThrough(slow)));
  const std::vector<std::string> all{slow, servers_[1]->address(), servers_[2]->address()};
  proxy.Delay(Milliseconds(100));
  std::vector<uint64_t> answers;
  for (const std::string& address : all) answers.push_back(AnswersOf(address));
  EXPECT_TRUE(AllGetMore(300));
  for (size_t i = 0; i < all.size(); ++i) answers[i] = AnswersOf(all[i]) - answers[i];
  std::printf("answers of the slow server %llu, of the others %llu and %llu\n",
              static_cast<unsigned long long>(answers[0]),
              static_cast<unsigned long long>(answers[1]),
              static_cast<unsigned long long>(answers[2]));
  EXPECT_LT(answers[0] * 2, std::min(answers[1], answers[2]));
  proxy.Delay(Milliseconds(0));
  EXPECT_TRUE(IsAsked(slow)) << "it is as fast as the others again";
  JudgeClient();
}

}  // namespace
}  // namespace firn
