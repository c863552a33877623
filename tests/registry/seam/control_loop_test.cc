#include "registry/seam/control_loop.h"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/registry/memory_coordinator.h"

namespace firn {
namespace {

class ControlLoopTest : public testing::Test {
 protected:
  MemoryTree tree_{SystemClock()};
  ControlLoop loop_{SystemClock(), std::make_unique<MemoryCoordinator>(tree_)};
};

TEST_F(ControlLoopTest, TicksAndTasksShareOneThread) {
  std::promise<std::thread::id> ticked;
  bool told = false;
  loop_.Start([&](Now) {
    if (!std::exchange(told, true)) ticked.set_value(std::this_thread::get_id());
  });
  std::thread::id ran;
  loop_.Run([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ticked.get_future().get(), ran);
  EXPECT_NE(ran, std::this_thread::get_id());
  loop_.Stop();  // the tick's references end here
}

TEST_F(ControlLoopTest, DeliversAnswersOnTheThread) {
  loop_.Start([](Now) {});
  std::promise<std::thread::id> answered;
  loop_.Post([&] {
    loop_.coordinator().Sync(
        "/", [&](const Status&) { answered.set_value(std::this_thread::get_id()); });
  });
  std::thread::id ran;
  loop_.Run([&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(answered.get_future().get(), ran);
  loop_.Stop();
}

TEST_F(ControlLoopTest, DoesNothingBetweenRoundsWithoutAThread) {
  int ticks = 0;
  int posted = 0;
  int ran = 0;
  loop_.StartByHand([&](Now) { ++ticks; });
  loop_.Post([&] { ++posted; });
  EXPECT_TRUE(loop_.Run([&] { ++ran; }));
  EXPECT_EQ(ticks + posted, 0);
  EXPECT_EQ(ran, 1);
  loop_.Round();
  EXPECT_EQ(ticks, 1);
  EXPECT_EQ(posted, 1);
}

TEST_F(ControlLoopTest, RunsTasksPostedBeforeStop) {
  loop_.Start([](Now) {});
  std::atomic<int> done = 0;
  for (int i = 0; i < 1000; ++i) loop_.Post([&] { ++done; });
  loop_.Stop();
  EXPECT_EQ(done, 1000);
  loop_.Post([&] { ++done; });
  EXPECT_EQ(done, 1000);
  loop_.Run([&] { ++done; });
  EXPECT_EQ(done, 1001);
}

TEST_F(ControlLoopTest, RunsFromManyThreadsDoNotInterfere) {
  loop_.Start([](Now) {});
  int unguarded = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 100; ++i) loop_.Run([&] { ++unguarded; });
      });
    }
  }
  EXPECT_EQ(unguarded, 400);
}

}  // namespace
}  // namespace firn
