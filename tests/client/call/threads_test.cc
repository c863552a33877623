// The client's own threads, and what runs on them.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"

namespace firn {
namespace {

constexpr Milliseconds kPatience{60'000};

std::set<std::string> Threads() {
  std::set<std::string> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(task.path());
  }
  return all;
}

// Whether the thread takes it, as far as it exists.
bool Takes(const std::string& thread, int signal) {
  std::ifstream status(thread + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0;
  }
  return false;
}

TEST(ThreadsTest, TakeNoSignalOfTheProgramButThoseThatTheyCause) {
  const std::set<std::string> before = Threads();
  const Client client({.servers = "list://127.0.0.1:1"});
  int own = 0;
  for (const std::string& thread : Threads()) {
    if (before.contains(thread)) continue;
    ++own;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD}) {
      EXPECT_FALSE(Takes(thread, signal)) << thread << " takes " << signal;
    }
    // A thread that is being made takes none at all for a moment.
    EXPECT_TRUE(Eventually(kPatience, [&] { return Takes(thread, SIGSEGV); })) << thread;
  }
  EXPECT_GE(own, 2);
  for (const std::string& thread : before) EXPECT_TRUE(Takes(thread, SIGTERM)) << thread;
}

TEST(ThreadsDeathTest, WhatACallbackThrowsEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto call = [] {
    ClientRig rig(1);
    std::promise<void> never;
    rig.client().GetId(
        "order", [](const Result<int64_t>&) { throw std::runtime_error("thrown by a callback"); });
    never.get_future().wait_for(kPatience);
  };
  EXPECT_DEATH(call(), "thrown by a callback");
}

TEST(CallbackTest, NoneIsMeantByEmptyBraces) {
  ClientRig rig(1);
  EXPECT_TRUE(rig.client().GetId("order", {}).ok());
  EXPECT_TRUE(rig.client().GetIds("order", 2, {}).ok());
}

TEST(EndTest, TheReportSaysWhomTheCallWasAsking) {
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
