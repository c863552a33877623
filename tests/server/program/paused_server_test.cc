// One of three real servers is paused: its process is stopped, and its connections stay open.

#include <algorithm>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client/client.h"
#include "common/time/clock.h"
#include "common/time/micros.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using client::Micros;

constexpr int kServers = 3;
constexpr int kThreads = 4;
constexpr int kCallsPerThread = 500;
constexpr Milliseconds kAttemptLimit{2'000};

// The calls of all threads.
struct Calls {
  std::vector<Micros> elsewhere{};  // times of calls that did not try the paused server
  int of_paused = 0;                // calls that did
  int retried_elsewhere = 0;        // of `elsewhere`, those with more than one attempt

  Micros P99() {
    std::sort(elsewhere.begin(), elsewhere.end());
    return elsewhere.at(elsewhere.size() * 99 / 100);
  }
};

class PausedServerTest : public testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < kServers; ++i) {
      servers_.push_back(std::make_unique<RunningServer>(
          dir_ / std::to_string(i),
          std::vector<std::string>{"--registry=dir://" + (dir_ / "all")}));
      // The first one creates the directory.
      ASSERT_TRUE(servers_.back()->BecomesReady()) << servers_.back()->log();
    }
    std::string list = "list://";
    for (const auto& server : servers_) list += server->address() + ",";
    list.pop_back();
    client_ = std::make_unique<Client>(ClientOptions{
        .servers = list, .deadline = Milliseconds(60'000), .attempt_limit = kAttemptLimit});
  }

  // Each thread makes its calls; `paused` is the address of a server.
  Calls CallAll(const std::string& paused) {
    Calls all;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < kCallsPerThread; ++n) Call(paused, mutex, all);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }

  TempDir dir_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
  std::unique_ptr<Client> client_;

 private:
  void Call(const std::string& paused, std::mutex& mutex, Calls& all) {
    CallReport report;
    const Micros began = SystemClock().BootMicros();
    const Result<int64_t> id = client_->GetId("default", {.report = &report});
    const Micros took = SystemClock().BootMicros() - began;
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(id.ok()) << id.status();
    const bool asked = std::any_of(report.attempts.begin(), report.attempts.end(),
                                   [&](const CallAttempt& one) { return one.server == paused; });
    if (asked) {
      ++all.of_paused;
    } else {
      all.elsewhere.push_back(took);
      all.retried_elsewhere += report.attempts.size() > 1 ? 1 : 0;
    }
  }
};

TEST_F(PausedServerTest, DelaysNoCallOnTheOtherServers) {
  const std::string paused = servers_[0]->address();
  Calls before = CallAll("");
  servers_[0]->process().Pause();
  Calls after = CallAll(paused);
  servers_[0]->process().Resume();
  // Calls in flight at the pause, and one per thread for each failure up to the ejection.
  EXPECT_LE(after.of_paused, kThreads * 4);
  EXPECT_EQ(after.retried_elsewhere, 0);
  EXPECT_LT(after.P99(), kAttemptLimit) << "the calls waited for the paused server";
  const double ratio = static_cast<double>(after.P99().count()) /
                       static_cast<double>(std::max<int64_t>(before.P99().count(), 1));
  std::cout << "p99 of calls on the other servers: " << before.P99().count() << " us before, "
            << after.P99().count() << " us while one is paused, ratio " << ratio << "; "
            << after.of_paused << " calls asked the paused server\n";
}

}  // namespace
}  // namespace firn
