#include "common/sequence/tick_source.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

TEST(TickSource, ReadsTheClockEachTimeWithoutASteadyCounter) {
  VirtualClock clock(Layout::Firn().epoch() + Milliseconds(5));
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, clock, false);
  EXPECT_EQ(ticks.Current(), Tick(5));
  clock.Advance(Milliseconds(1));
  EXPECT_EQ(ticks.Current(), Tick(6));
}

TEST(TickSource, ReusesAReadingOnlyWhileItIsFresh) {
  if (!CyclesAreSteady()) GTEST_SKIP() << "no steady cycle counter here";
  VirtualClock clock(Layout::Firn().epoch() + Milliseconds(5));
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, clock, true);
  clock.Advance(Milliseconds(1));
  const uint64_t stale = CycleCount() + kFreshCycles;
  while (CycleCount() < stale) {
  }
  EXPECT_EQ(ticks.Current(), Tick(6));
}

TEST(TickSource, ReadsTheClockAgainBeforeACallWaits) {
  VirtualClock clock(Layout::Firn().epoch() + Milliseconds(5));
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, clock, true);
  clock.Advance(Milliseconds(1));
  EXPECT_EQ(ticks.Refresh(), Tick(6));
}

TEST(TickSource, IsNegativeBeforeTheEpoch) {
  VirtualClock clock(Layout::Firn().epoch() - Milliseconds(3));
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, clock, false);
  EXPECT_EQ(ticks.Current(), Tick(-3));
}

TEST(TickSource, ReturnsTheTimeUntilATick) {
  VirtualClock clock(Layout::VestaMaxPeak().epoch() + Milliseconds(5'400));
  IdClock id_clock;
  TickSource ticks(Layout::VestaMaxPeak(), id_clock, clock, false);
  EXPECT_EQ(ticks.Until(Tick(6)), Milliseconds(600));
  EXPECT_GT(ticks.Until(Tick(2)), Milliseconds(0)) << "a caller would spin on zero";
}

TEST(TickSource, ReportsAStoppedClock) {
  VirtualClock clock(Layout::Firn().epoch() + Milliseconds(5));
  IdClock id_clock({.policy = ClockPolicy::kStrict});
  TickSource ticks(Layout::Firn(), id_clock, clock, false);
  clock.StepWall(-Milliseconds(3));
  EXPECT_EQ(ticks.Current(), TickSource::kStopped);
  clock.StepWall(Milliseconds(3));
  EXPECT_EQ(ticks.Current(), Tick(5));
}

TEST(TickSource, ARestartSetsTheTickBackForEveryThread) {
  IdClock id_clock;
  VirtualClock clock(Layout::Firn().epoch() + Milliseconds(9'000'000));
  TickSource ticks(Layout::Firn(), id_clock, clock, false);
  std::atomic<bool> over{false};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!over) ticks.Refresh();
    });
  }
  for (int n = 0; n < 2'000; ++n) {
    ticks.RaiseTo(Tick(9'000'000));
    clock.Advance(Milliseconds(1));
    ticks.Restart(Layout::Firn().epoch() + Milliseconds(5), clock.Read());
    ASSERT_EQ(id_clock.Last(), Layout::Firn().epoch() + Milliseconds(5));
    ASSERT_EQ(ticks.Refresh(), Tick(5)) << "a thread restored an older reading";
  }
  over = true;
}

TEST(TickSource, NeverGoesBackForManyThreads) {
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, SystemClock());
  std::atomic<int> backwards{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      Tick newest = ticks.Current();
      for (int n = 0; n < 200'000; ++n) {
        const Tick now = n % 64 == 0 ? ticks.Refresh() : ticks.Current();
        if (now < newest) ++backwards;
        newest = now;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace firn
