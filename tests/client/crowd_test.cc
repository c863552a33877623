// Tests many threads and many calls at once, on servers that stop and restart.

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "client/fleet/retry_budget.h"
#include "tests/client/client_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

// Collects the ids of all threads.
class IdBag {
 public:
  void Add(const Result<int64_t>& id) {
    const std::lock_guard lock(mutex_);
    if (id.ok()) {
      ids_.push_back(*id);
    } else if (failures_++ == 0) {
      first_failure_ = id.status();
    }
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return ids_.size() + failures_;
  }
  void ExpectAllAnsweredOnce() {
    EXPECT_EQ(failures_, 0u) << first_failure_;
    std::sort(ids_.begin(), ids_.end());
    EXPECT_EQ(std::adjacent_find(ids_.begin(), ids_.end()), ids_.end()) << "an id was issued twice";
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> ids_;
  size_t failures_ = 0;
  Status first_failure_;
};

class CrowdTest : public testing::Test {
 protected:
  static constexpr int kThreads = 8;

  CrowdTest() {
    rig_.options.servers_max = 0;
    rig_.client();
  }

  // Runs threads that make both kinds of calls at full speed, until `happen` returns.
  template <typename Happen>
  void UnderLoad(Happen happen) {
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([this, i](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            bag_.Add(i % 2 == 0 ? rig_.client().GetId("order")
                                : rig_.client().GetIdLater("order").get());
          }
        });
      }
      Passes(200);
      happen();
      Passes(200);
    }
    bag_.ExpectAllAnsweredOnce();
  }
  // Waits until this number of further calls have ended.
  void Passes(size_t calls) {
    const size_t before = bag_.size();
    EXPECT_TRUE(Eventually(kPatience, [&] { return bag_.size() >= before + calls; }));
  }

  ClientRig rig_{3};
  IdBag bag_;
};

TEST_F(CrowdTest, LosesNoCallWhileServersStopAndRestart) {
  UnderLoad([this] {
    for (int i = 0; i < 6; ++i) {
      FakeServer& server = rig_.server(static_cast<size_t>(i % 3));
      server.Down();
      Passes(100);
      server.Up();
      Passes(100);
    }
  });
}

TEST_F(CrowdTest, LosesNoCallWhileConnectionsAreClosed) {
  UnderLoad([this] {
    // One server at a time: a call fails if all three servers close its connections.
    for (int i = 0; i < 30; ++i) {
      rig_.server(static_cast<size_t>(i / 10)).CloseConnections();
      Passes(i % 10 == 9 ? 300 : 20);
    }
  });
}

TEST_F(CrowdTest, LosesNoCallWhileServersDrain) {
  UnderLoad([this] {
    rig_.server(0).Behave({.kind = Kind::kRefuse, .reason = Reason::kDraining});
    Passes(100);
    rig_.server(1).Behave({.kind = Kind::kRefuse, .reason = Reason::kNotReady});
    Passes(100);
  });
}

TEST(SharedConnectionsTest, ServeMoreThreadsThanConnections) {
  ClientRig rig(1);
  constexpr int kThreads = 300, kCalls = 20;
  IdBag bag;
  rig.client();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < kCalls; ++n) bag.Add(rig.client().GetId("order"));
      });
    }
  }
  EXPECT_EQ(bag.size(), size_t{kThreads} * kCalls);
  bag.ExpectAllAnsweredOnce();
  EXPECT_LE(rig.server(0).connections(), rig.options.connections);
}

TEST(RetryStormTest, StaysInsideTheBudget) {
  ClientRig rig(3);
  for (FakeServer* server : rig.servers()) {
    server->Behave({.kind = Kind::kRefuse, .reason = Reason::kNotReady});
  }
  rig.client();
  const BootMs began = TestNow();
  std::atomic<int64_t> calls{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < 250; ++n, ++calls) {
          EXPECT_FALSE(rig.client().GetId("order", {.deadline = Milliseconds(20'000)}).ok());
        }
      });
    }
  }
  int64_t asked = 0;
  for (const FakeServer* server : rig.servers()) asked += server->requests();
  const double seconds = static_cast<double>((TestNow() - began).count() + 1) / 1000;
  const double allowed = static_cast<double>(calls) * (1 + client::RetryBudget::kPerCall) +
                         client::RetryBudget::kMost + client::RetryBudget::kPerSecond * seconds;
  EXPECT_EQ(calls, 2'000);
  EXPECT_LE(static_cast<double>(asked), allowed);
  EXPECT_EQ(static_cast<uint64_t>(asked), rig.client().counters().attempts);
  EXPECT_GT(rig.client().counters().retries_denied, 0u);
}

TEST(RetryStormTest, StaysInsideTheBudgetAlsoWithAllCallsOnFewConnections) {
  ClientRig rig(3, CallForm::kAsync);
  rig.options.attempt_limit = Milliseconds(300);
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kSilent);
  rig.client();
  constexpr size_t kCalls = 1'500;
  const BootMs began = TestNow();
  std::vector<std::future<Result<int64_t>>> later;
  for (size_t i = 0; i < kCalls; ++i) later.push_back(rig.client().GetIdLater("order"));
  for (auto& id : later) EXPECT_FALSE(id.get().ok());
  const double seconds = static_cast<double>((TestNow() - began).count() + 1) / 1000;
  const double allowed = kCalls * (1 + client::RetryBudget::kPerCall) + client::RetryBudget::kMost +
                         client::RetryBudget::kPerSecond * seconds;
  EXPECT_LE(static_cast<double>(rig.client().counters().attempts), allowed);
  EXPECT_LE(static_cast<double>(rig.Requests()), allowed);
}

// --- asynchronous calls -------------------------------------------------------------------------

TEST(AsyncTest, AnswersThousandsOfCallsAtOnce) {
  ClientRig rig(3);
  IdBag bag;
  constexpr size_t kCalls = 3'000;
  for (size_t i = 0; i < kCalls; ++i) {
    rig.client().GetId("order", [&bag](const Result<int64_t>& id) { bag.Add(id); });
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return bag.size() == kCalls; }));
  bag.ExpectAllAnsweredOnce();
}

// Pauses one of three servers of the same latency.
void PauseOneOfThree(ClientRig& rig, Milliseconds attempt_limit) {
  rig.options.servers_max = 0;
  rig.options.attempt_limit = attempt_limit;
  for (FakeServer* server : rig.servers()) server->Behave({.delay = Milliseconds(20)});
  rig.AskEach();
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kServe);
  rig.server(0).Behave(Kind::kSilent);
}

// Makes calls in one turn of the client's thread, so that all are sent before any is answered. Runs
// `answered` in the callback of each.
void Burst(
    ClientRig& rig, size_t calls, IdBag& bag, const std::function<void()>& answered = [] {}) {
  const size_t before = bag.size();
  const std::string bad_tag(70'000, 'x');  // such a call ends at once
  rig.client().GetId(bad_tag, [&rig, &bag, &answered, calls](const Result<int64_t>&) {
    for (size_t n = 0; n < calls; ++n) {
      rig.client().GetId("order", [&bag, &answered](const Result<int64_t>& id) {
        answered();
        bag.Add(id);  // last, because then the burst may end
      });
    }
  });
  EXPECT_TRUE(Eventually(kPatience, [&] { return bag.size() == before + calls; }));
}

TEST(AsyncTest, LosesNoneOfHundredsOfCallsThatAPausedServerHolds) {
  constexpr int kTriesMax = 8;
  int paused = 0;
  for (int i = 0; i < kTriesMax; ++i) {
    IdBag bag;
    ClientRig rig(3, CallForm::kAsync);
    PauseOneOfThree(rig, Milliseconds(3'000));
    Burst(rig, 1'200, bag);
    // Inconclusive if the machine paused for longer than an attempt's timeout, or the retry budget
    // suffices.
    const uint64_t late = rig.View(rig.server(1)).failed + rig.View(rig.server(2)).failed;
    paused += late > 0 ? 1 : 0;
    if (late > 0 || rig.server(0).requests() < 300) continue;
    bag.ExpectAllAnsweredOnce();
    EXPECT_GT(rig.client().counters().free_retries, 0u);
    return;
  }
  ASSERT_GT(paused, 0) << "too few calls go to the server in every attempt";
  GTEST_SKIP() << "the machine paused in every attempt";
}

TEST(AsyncTest, SendsNoMoreCallsToAServerThatHoldsSeveral) {
  constexpr int kTriesMax = 8;
  int paused = 0;
  for (int i = 0; i < kTriesMax; ++i) {
    IdBag bag;
    ClientRig rig(3, CallForm::kAsync);
    PauseOneOfThree(rig, Milliseconds(1'000));
    const int64_t answered = rig.server(0).requests();
    Burst(rig, 30, bag);
    const int64_t before = rig.server(0).requests();
    const bool ejected = rig.View(rig.server(0)).health == ServerHealth::kEjected;
    Burst(rig, 30, bag);
    const uint64_t late = rig.View(rig.server(1)).failed + rig.View(rig.server(2)).failed;
    paused += late > 0 ? 1 : 0;
    // Inconclusive if the machine paused for longer than an attempt's timeout, or the server holds
    // too few calls.
    if (late > 0 || before - answered < 5) continue;
    bag.ExpectAllAnsweredOnce();
    EXPECT_TRUE(ejected);
    EXPECT_EQ(rig.server(0).requests(), before);
    return;
  }
  ASSERT_GT(paused, 0) << "too few calls go to the server in every attempt";
  GTEST_SKIP() << "the machine paused in every attempt";
}

TEST(AsyncTest, BlamesNoServerForACallbackThatBlocks) {
  ClientRig rig(2, CallForm::kAsync);
  rig.options.attempt_limit = Milliseconds(400);
  rig.options.deadline = Milliseconds(1'000);
  for (int n = 0; n < 4; ++n) EXPECT_TRUE(rig.client().GetIdLater("order").get().ok());
  for (FakeServer* server : rig.servers()) server->Behave(Behaviour{.delay = Milliseconds(10)});
  IdBag bag;
  std::atomic<bool> blocks{true};
  Burst(rig, 30, bag, [&blocks] {
    if (!blocks.exchange(false)) return;
    // In the meantime, the answers arrive and all timeouts pass.
    const BootMs until = TestNow() + Milliseconds(1'500);
    EXPECT_TRUE(Eventually(kPatience, [&] { return TestNow() > until; }));
  });
  bag.ExpectAllAnsweredOnce();
  EXPECT_EQ(rig.client().counters().timeouts, 0u);
}

TEST(AsyncTest, ErrorSaysThatACallbackBlocked) {
  ClientRig rig(1);
  EXPECT_TRUE(rig.client().GetIdLater("order").get().ok());
  std::promise<void> entered, leave;
  rig.client().GetId("order", [&](const Result<int64_t>&) {
    rig.server(0).Behave(Kind::kSilent);
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  auto late = rig.client().GetIdLater("order", {.deadline = Milliseconds(50)});
  const BootMs until = TestNow() + Milliseconds(100);
  EXPECT_TRUE(Eventually(kPatience, [&] { return TestNow() > until; }));
  leave.set_value();
  const std::string text = late.get().status().message();
  EXPECT_NE(text.find("the client's own thread was blocked"), std::string::npos) << text;
}

TEST(AsyncTest, CallbacksMayStartCalls) {
  ClientRig rig(2);
  IdBag bag;
  std::atomic<int> left{500};
  std::function<void()> ask = [&] {
    rig.client().GetId("order", [&](const Result<int64_t>& id) {
      bag.Add(id);
      if (--left > 0) ask();
    });
  };
  ask();
  EXPECT_TRUE(Eventually(kPatience, [&] { return bag.size() >= 500; }));
  rig.DropClient();
  bag.ExpectAllAnsweredOnce();
}

TEST(AsyncTest, CallbacksMayMakeBlockingCalls) {
  ClientRig rig(2);
  std::promise<Result<int64_t>> inner;
  rig.client().GetId("order",
                     [&](const Result<int64_t>&) { inner.set_value(rig.client().GetId("order")); });
  EXPECT_TRUE(inner.get_future().get().ok());
}

TEST(AsyncTest, CallbacksDoNotDelayBlockingCalls) {
  ClientRig rig(2);
  std::promise<void> leave;
  std::promise<void> entered;
  rig.client().GetId("order", [&](const Result<int64_t>&) {
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  auto call = std::async(std::launch::async, [&rig] { return rig.GetId(); });
  const bool ended = call.wait_for(kPatience) == std::future_status::ready;
  leave.set_value();
  EXPECT_TRUE(ended);
  EXPECT_TRUE(call.get().ok());
}

TEST(AsyncTest, DestructorEndsCallsInProgress) {
  ClientRig rig(2);
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kSilent);
  std::vector<std::future<Result<int64_t>>> later;
  for (int i = 0; i < 50; ++i) later.push_back(rig.client().GetIdLater("order"));
  rig.DropClient();
  for (auto& id : later) EXPECT_EQ(id.get().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace firn
