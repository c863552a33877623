// Tests calls that share a turn, and callers that are woken together.

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client/call/bells.h"
#include "client/call/caller.h"
#include "common/time/clock.h"
#include "tests/client/fake_server.h"
#include "tests/support/process.h"

namespace firn::client {
namespace {

// --- bells --------------------------------------------------------------------------------------

TEST(BellsTest, ARingBeforeTheSleepIsNotMissed) {
  Bell bell;
  const uint32_t seen = bell.rings();
  bell.Ring();
  bell.Await(seen);
  EXPECT_EQ(bell.rings(), seen + 1);
}

TEST(BellsTest, ARingWakesEverySleeper) {
  constexpr int kCallers = 8, kRounds = 2'000;
  Bell bell;
  std::atomic<int> round = 0, awake = 0;
  std::vector<std::jthread> callers;
  for (int i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] {
      for (int last = 0; last < kRounds; ++last) {
        while (true) {
          const uint32_t seen = bell.rings();
          if (round > last) break;
          bell.Await(seen);
        }
        ++awake;
      }
    });
  }
  for (int i = 1; i <= kRounds; ++i) {
    round = i;
    bell.Ring();
    ASSERT_TRUE(Eventually(kPatience, [&] { return awake == i * kCallers; })) << i;
  }
}

TEST(BellsTest, CallsOfOneTurnShareABellUpToTheMaximum) {
  const auto bells = std::make_shared<Bells>();
  std::vector<std::shared_ptr<Bell>> turn;
  for (size_t i = 0; i <= Bells::kCallsMax; ++i) turn.push_back(Bells::Join(bells));
  for (size_t i = 1; i < Bells::kCallsMax; ++i) EXPECT_EQ(turn[i], turn[0]);
  EXPECT_NE(turn[Bells::kCallsMax], turn[0]);
  bells->UseNext();
  EXPECT_NE(Bells::Join(bells), turn[0]);
  EXPECT_NE(Bells::Join(bells), turn[Bells::kCallsMax]);
}

TEST(BellsTest, ABellRingsOnceForAllCallsThatHaveEnded) {
  const auto bells = std::make_shared<Bells>();
  const auto first = Bells::Join(bells);
  bells->UseNext();
  const auto second = Bells::Join(bells), third = Bells::Join(bells);
  for (const auto& bell : {second, third, second}) bells->RingLater(*bell);
  EXPECT_EQ(second->rings(), 0U);
  bells->RingAll();
  bells->RingAll();
  EXPECT_EQ(first->rings(), 0U);
  EXPECT_EQ(second->rings(), 1U);
}

// --- calls --------------------------------------------------------------------------------------

class GatherTest : public testing::Test {
 protected:
  // Starts these calls in one turn, and waits until all have ended.
  void InOneTurn(const std::vector<Ask>& asks) {
    std::promise<void> all;
    std::atomic<size_t> ended = 0;
    caller_.Post([&] {
      for (const Ask& ask : asks) {
        caller_.Start(ask, SystemClock().BootMicros() + Micros(kPatience), nullptr,
                      [&](const Status& status, Reply&) {
                        EXPECT_TRUE(status.ok()) << status;
                        if (++ended == asks.size()) all.set_value();
                      });
      }
    });
    all.get_future().wait();
  }

  FakeServer server_;
  Fleet fleet_{{}, SystemClock(), 42};
  TlsContext tls_{{}};
  CloseOnFork fds_;
  Caller caller_{fleet_,
                 tls_,
                 {.limits = {.attempt_limit = Micros(kPatience)}, .connections = 2, .gather = true},
                 SystemClock(),
                 fds_};
};

TEST_F(GatherTest, CallsForOneIdOfATagUseOneConnection) {
  fleet_.Apply({.servers = {{.address = server_.address()}}});
  InOneTurn(std::vector<Ask>(10, Ask{.tag = "order"}));
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(GatherTest, CallsForAnotherTagUseAnotherConnection) {
  fleet_.Apply({.servers = {{.address = server_.address()}}});
  InOneTurn({{.tag = "order"}, {.tag = "user"}});
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(GatherTest, ACallForSeveralIdsUsesAnotherConnection) {
  fleet_.Apply({.servers = {{.address = server_.address()}}});
  InOneTurn({{.tag = "order"}, {.method = Ask::Method::kGetIds, .tag = "order", .number = 100}});
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(GatherTest, ACallOfALaterTurnUsesAnotherConnection) {
  server_.Behave({.delay = Milliseconds(200)});
  fleet_.Apply({.servers = {{.address = server_.address()}}});
  std::thread first([&] { InOneTurn({{.tag = "order"}}); });
  EXPECT_TRUE(Eventually(kPatience, [&] { return server_.requests() == 1; }));
  InOneTurn({{.tag = "order"}});
  first.join();
  EXPECT_EQ(server_.connections(), 2);
}

TEST_F(GatherTest, ALateAnswerDelaysNoOtherCaller) {
  fleet_.Apply({.servers = {{.address = server_.address()}}});
  server_.Behave({.delay = Milliseconds(2'000)});
  const auto deadline = [](Milliseconds time) { return SystemClock().BootMicros() + Micros(time); };
  // Both wait for the same bell, and end after 100 ms and 2 s.
  CallPtr hasty, patient;
  std::promise<void> started;
  caller_.Post([&] {
    patient = caller_.Start({.tag = "order"}, deadline(kPatience), nullptr, nullptr);
    hasty = caller_.Start({.tag = "order"}, deadline(Milliseconds(100)), nullptr, nullptr);
    started.set_value();
  });
  started.get_future().wait();
  std::atomic<bool> patient_ended = false;
  std::thread waiting([&] {
    patient->AwaitEnd();
    patient_ended = true;
  });
  hasty->AwaitEnd();
  EXPECT_EQ(hasty->status().code(), Code::kUnavailable);
  EXPECT_FALSE(patient_ended);
  waiting.join();
  EXPECT_TRUE(patient->status().ok()) << patient->status();
  EXPECT_EQ(server_.connections(), 1);
}

}  // namespace
}  // namespace firn::client
