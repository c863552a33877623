// Tests a real server and its client in one process: threads make every kind of call, also with
// prefetched ids, while the server stops and restarts.

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client/client.h"
#include "client/local_ranges.h"
#include "server/front/server_front.h"
#include "tests/bench/bench_server.h"
#include "tests/support/process.h"

namespace firn {
namespace {

class ClientAndServerTest : public testing::Test {
 protected:
  static constexpr int kBatch = 20;

  void StartServer() {
    front::ServerFrontOptions options;
    options.listen.port = static_cast<uint16_t>(port_);
    options.listen.io_threads = 2;
    front_.emplace(options, issuing_.issuer(), issuing_, issuing_, SystemClock());
    const Status started = front_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }
  void StopServer() {
    front_->Shutdown(Milliseconds(1000));
    front_.reset();
  }
  void StartClient() {
    client_.emplace(ClientOptions{.servers = "list://127.0.0.1:" + std::to_string(port_),
                                  .deadline = Milliseconds(10'000),
                                  .attempt_limit = Milliseconds(5'000),
                                  .local_ranges = LocalRanges({LocalTag::Snowflake("default")})});
  }

  // Runs on each of many threads; adds its ids to ids_.
  void Ask(const std::stop_token& stop, int form) {
    while (!stop.stop_requested()) {
      std::vector<int64_t> got;
      for (int i = 0; i < kBatch; ++i) {
        if (form == 0) {
          Keep(client_->GetId("default"), got);
        } else if (form == 1) {
          Keep(client_->GetIdLater("default").get(), got);
        } else if (const auto ids = client_->GetIds("default", 2); ids.ok()) {
          got.insert(got.end(), ids->begin(), ids->end());
        }
      }
      {
        const std::lock_guard lock(mutex_);
        ids_.insert(ids_.end(), got.begin(), got.end());
      }
      SleepBriefly();  // without it there would be too many ids to store
    }
  }
  static void Keep(const Result<int64_t>& id, std::vector<int64_t>& got) {
    if (id.ok()) got.push_back(*id);
  }

  size_t count() {
    const std::lock_guard lock(mutex_);
    return ids_.size();
  }
  void GetsMore(size_t ids) {
    const size_t before = count();
    EXPECT_TRUE(Eventually(kPatience, [&] { return count() >= before + ids; }));
  }

  const int port_ = FreePort();
  front::BenchServer issuing_;
  std::optional<front::ServerFront> front_;
  std::optional<Client> client_;
  std::mutex mutex_;
  std::vector<int64_t> ids_;  // under mutex_
};

TEST_F(ClientAndServerTest, IssuesNoIdTwiceWhileTheServerRestarts) {
  ASSERT_NO_FATAL_FAILURE(StartServer());
  StartClient();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([this, i](const std::stop_token& stop) { Ask(stop, i % 3); });
  }
  for (int i = 0; i < 3; ++i) {
    GetsMore(500);
    StopServer();
    ASSERT_NO_FATAL_FAILURE(StartServer());
  }
  GetsMore(500);
  threads.clear();
  EXPECT_GT(client_->counters().local_taken, 0u);
  client_.reset();
  StopServer();
  std::sort(ids_.begin(), ids_.end());
  EXPECT_EQ(std::adjacent_find(ids_.begin(), ids_.end()), ids_.end()) << "an id was issued twice";
}

}  // namespace
}  // namespace firn
