// Tests the client's threads, and the callbacks and hooks that run on them.

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"
#include "tests/client/executor.h"
#include "tests/support/process.h"

namespace firn {
namespace {

std::set<std::string> Threads() {
  std::set<std::string> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(task.path());
  }
  return all;
}

// Returns whether the thread accepts the signal. False if the thread no longer exists.
bool Takes(const std::string& thread, int signal) {
  std::ifstream status(thread + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0;
  }
  return false;
}

TEST(ThreadsTest, BlockAllSignalsExceptThoseOfTheirOwnFaults) {
  const std::set<std::string> before = Threads();
  const Client client({.servers = "list://127.0.0.1:1"});
  int own = 0;
  for (const std::string& thread : Threads()) {
    if (before.contains(thread)) continue;
    ++own;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD}) {
      EXPECT_FALSE(Takes(thread, signal)) << thread << " takes " << signal;
    }
    // A new thread blocks all signals for a short time.
    EXPECT_TRUE(Eventually(kPatience, [&] { return Takes(thread, SIGSEGV); })) << thread;
  }
  EXPECT_GE(own, 2);
  for (const std::string& thread : before) EXPECT_TRUE(Takes(thread, SIGTERM)) << thread;
}

TEST(ThreadsTest, DiscardsExceptionsOfCallbacksAndHooks) {
  ClientRig rig(2);
  std::atomic<int> events{0};
  rig.options.on_event = [&](const ClientEvent&) {
    ++events;
    throw std::runtime_error("thrown by a hook");
  };
  rig.client().GetId(
      "order", [](const Result<int64_t>&) { throw std::runtime_error("thrown by a callback"); });
  ASSERT_TRUE(rig.GetId().ok());
  rig.favourite().Behave(Behaviour::Kind::kFarTime);
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig.GetId().ok() && events > 1; }));
}

// The callbacks block the thread repeatedly, each for longer than it takes to arm a timer.
TEST(ThreadsTest, ConsecutiveBlockingCallbacksDelayNoFailover) {
  constexpr Milliseconds kBlock{30};
  const std::string bad_tag(70'000, 'x');  // a call with it ends at once
  std::atomic<bool> stop = false;
  std::function<void(Result<int64_t>)> block;
  ClientRig rig(2, CallForm::kAsync);
  rig.options.attempt_limit = kShortAttempt;
  ASSERT_TRUE(rig.GetId().ok());
  FakeServer& silent = rig.favourite();
  silent.Behave(Behaviour::Kind::kSilent);
  block = [&](const Result<int64_t>&) {
    SleepFor(kBlock);
    if (!stop) rig.client().GetId(bad_tag, block);
  };
  rig.client().GetId(bad_tag, block);
  const Result<int64_t> id = rig.GetId();
  EXPECT_TRUE(id.ok()) << id.status();
  EXPECT_TRUE(Eventually(kPatience, [&] { return silent.open_connections() == 0; }))
      << "the silent connection is never closed";
  stop = true;
}

TEST(ThreadsDeathTest, DestroyingAClientInItsOwnCallbackEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto call = [] {
    ClientRig rig(1);
    std::promise<void> never;
    rig.client().GetId("order", [&rig](const Result<int64_t>&) { rig.DropClient(); });
    never.get_future().wait_for(kPatience);
  };
  EXPECT_DEATH(call(), "a client was destroyed in one of its own callbacks");
}

TEST(ThreadsDeathTest, DestroyingAClientInItsEventHookEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto destroy = [] {
    std::unique_ptr<Client> client;
    client = std::make_unique<Client>(
        ClientOptions{.servers = "list://127.0.0.1:1",
                      .on_event = [&client](const ClientEvent&) { client.reset(); }});
    while (client != nullptr) static_cast<void>(client->GetId("order"));
  };
  EXPECT_DEATH(destroy(), "a client was destroyed in one of its own callbacks");
}

// A client whose callbacks run on an executor.
class CallbacksElsewhereTest : public testing::Test {
 protected:
  CallbacksElsewhereTest() {
    rig_.options.callbacks = [this](std::function<void()> task) { executor_.Add(std::move(task)); };
  }

  ClientRig rig_{1};
  Executor executor_;
};

TEST_F(CallbacksElsewhereTest, ABlockedCallbackDelaysNoCall) {
  std::promise<void> go_on;
  std::promise<std::thread::id> ran_on;
  rig_.client().GetId("order", [&](const Result<int64_t>& id) {
    EXPECT_TRUE(id.ok()) << id.status();
    ran_on.set_value(std::this_thread::get_id());
    go_on.get_future().wait_for(kPatience);
  });
  EXPECT_EQ(ran_on.get_future().get(), executor_.id());
  // A future gets its answer although the executor is busy.
  auto later = rig_.client().GetIdLater("order");
  EXPECT_EQ(later.wait_for(kPatience), std::future_status::ready);
  go_on.set_value();
  std::promise<void> all;
  rig_.client().GetText("order", [&](const Result<std::string>& text) {
    EXPECT_TRUE(text.ok()) << text.status();
    all.set_value();
  });
  EXPECT_EQ(all.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(CallbacksElsewhereTest, RunsEachOnceAfterTheClientsEnd) {
  rig_.server(0).Behave(Behaviour::Kind::kSilent);
  std::atomic<int> ended = 0;
  for (int i = 0; i < 100; ++i) {
    rig_.client().GetRuns("order", 5, [&](const Result<std::vector<IdRun>>& runs) {
      EXPECT_EQ(runs.code(), Code::kUnavailable);
      ++ended;
    });
  }
  rig_.DropClient();
  EXPECT_TRUE(Eventually(kPatience, [&] { return ended == 100; }));
}

TEST_F(CallbacksElsewhereTest, PassesExceptionsToTheProgramsExecutor) {
  std::promise<std::string> caught;
  rig_.options.callbacks = [&](std::function<void()> task) {
    executor_.Add([&, task = std::move(task)] {
      try {
        task();
      } catch (const std::runtime_error& error) {
        caught.set_value(error.what());
      }
    });
  };
  rig_.client().GetId("order", [](const Result<int64_t>&) { throw std::runtime_error("thrown"); });
  EXPECT_EQ(caught.get_future().get(), "thrown");
  EXPECT_TRUE(rig_.GetId().ok());
}

// The executor's queue may be full, or the executor may have been shut down.
TEST_F(CallbacksElsewhereTest, RunsACallbackThatTheExecutorRefuses) {
  rig_.options.callbacks = [](const std::function<void()>&) { throw std::runtime_error("full"); };
  std::promise<Result<int64_t>> id;
  rig_.client().GetId("order", [&](Result<int64_t> got) { id.set_value(std::move(got)); });
  auto ended = id.get_future();
  ASSERT_EQ(ended.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(ended.get().ok());
}

TEST_F(CallbacksElsewhereTest, RunsNoCallbackAgainThatTheExecutorRanBeforeItThrew) {
  rig_.options.callbacks = [](const std::function<void()>& task) {
    task();
    throw std::runtime_error("thrown by the executor");
  };
  std::atomic<int> runs = 0;
  rig_.client().GetId("order", [&](const Result<int64_t>&) {
    ++runs;
    throw std::runtime_error("thrown by a callback");
  });
  EXPECT_TRUE(Eventually(kPatience, [&] { return runs > 0; }));
  EXPECT_TRUE(rig_.GetId().ok());
  rig_.DropClient();
  EXPECT_EQ(runs, 1);
}

TEST(CallbackTest, EmptyBracesSelectTheBlockingCall) {
  ClientRig rig(1);
  EXPECT_TRUE(rig.client().GetId("order", {}).ok());
  EXPECT_TRUE(rig.client().GetIds("order", 2, {}).ok());
}

TEST(EndTest, TheReportNamesTheServerInProgress) {
  ClientRig rig(1);
  rig.server(0).Behave(Behaviour::Kind::kSilent);
  CallReport report;
  auto id = rig.client().GetIdLater("order", {.report = &report});
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig.server(0).requests() == 1; }));
  rig.DropClient();
  EXPECT_EQ(id.get().code(), Code::kUnavailable);
  ASSERT_EQ(report.attempts.size(), 1u);
  EXPECT_EQ(report.attempts[0].server, rig.server(0).address());
  EXPECT_EQ(report.attempts[0].end, AttemptEnd::kAbandoned);
}

}  // namespace
}  // namespace firn
