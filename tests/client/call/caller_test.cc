// Tests the turns of the IO thread, with a clock that only the test advances.

#include "client/call/caller.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "tests/support/process.h"
#include "tests/support/virtual_clock.h"

namespace firn::client {
namespace {

// A clock that counts its reads. Each turn reads it at least once.
class WatchedClock final : public Clock {
 public:
  WallMs Wall() const override { return WallMs(1'700'000'000'000); }
  BootMs Boot() const override {
    ++readings_;
    return BootMs(boot_ms_);
  }
  void Advance(Milliseconds time) { boot_ms_ += time.count(); }
  int readings() const { return readings_; }

 private:
  std::atomic<int64_t> boot_ms_ = 1'000'000;
  mutable std::atomic<int> readings_ = 0;
};

class CallerTest : public testing::Test {
 protected:
  // Starts a call with a deadline of an hour.
  void Start() {
    caller_.Start({.tag = "order"}, clock_.BootMicros() + kAnHour, nullptr,
                  [this](const Status&, Reply&) { ++ended_; });
  }
  void AwaitEnded(int calls) {
    EXPECT_TRUE(Eventually(kPatience, [&] { return ended_ == calls; })) << ended_;
  }

  WatchedClock clock_;
  Fleet fleet_{{}, clock_, 42};
  TlsContext tls_{{}};
  CloseOnFork fds_;
  std::atomic<int> ended_ = 0;
  Caller caller_{fleet_, tls_, {}, clock_, fds_};
};

// The call's deadline passes during the turn.
TEST_F(CallerTest, ALongTurnDelaysNoDeadline) {
  caller_.Post([this] {
    Start();
    clock_.Advance(kAnHour);
  });
  AwaitEnded(1);
}

// Each turn is long, and the next one begins at once.
TEST_F(CallerTest, ConsecutiveLongTurnsDelayNoDeadline) {
  std::atomic<bool> stop = false;
  std::promise<void> stopped;
  std::function<void()> turn = [&] {
    if (stop) return stopped.set_value();
    clock_.Advance(Milliseconds(30));
    SleepFor(Milliseconds(1));
    caller_.Post(turn);
  };
  caller_.Post([&] {
    caller_.Start({.tag = "order"}, clock_.BootMicros() + Milliseconds(10), nullptr,
                  [this](const Status&, Reply&) { ++ended_; });
    turn();
  });
  AwaitEnded(1);
  stop = true;
  stopped.get_future().wait();
}

TEST_F(CallerTest, AllWaitingCallsEndAtTheirDeadline) {
  constexpr int kMany = Caller::kCallsMax;
  caller_.Post([this] {
    for (int i = 0; i < kMany; ++i) Start();
    clock_.Advance(kAnHour);
  });
  AwaitEnded(kMany);
}

TEST_F(CallerTest, PendingNewsIsNotReportedAgain) {
  std::promise<void> go_on, all;
  caller_.Post([&go_on] { go_on.get_future().wait(); });
  for (int i = 0; i < 1'000; ++i) caller_.OnNews();
  caller_.Post([&all] { all.set_value(); });
  const int before = clock_.readings();
  go_on.set_value();
  all.get_future().wait();
  EXPECT_LE(clock_.readings() - before, 10);
}

}  // namespace
}  // namespace firn::client
