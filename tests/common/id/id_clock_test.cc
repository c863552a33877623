#include "common/id/id_clock.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kStart{1'800'000'000'000};

TEST(IdClock, ReturnsTheTimeThatItHasReached) {
  VirtualClock clock(kStart);
  IdClock id_clock;
  EXPECT_EQ(id_clock.Advance(clock.Read()), kStart);
  clock.Advance(Milliseconds(7));
  EXPECT_EQ(id_clock.Last(), kStart);
  EXPECT_TRUE(id_clock.TryAdvance(clock.Read()));
  EXPECT_EQ(id_clock.Last(), kStart + Milliseconds(7));
  id_clock.RaiseTo(kStart + Milliseconds(70), clock.Read());
  EXPECT_EQ(id_clock.Last(), kStart + Milliseconds(70));
}

TEST(IdClock, CallsTheAlarmHookWithoutALock) {
  VirtualClock clock(kStart);
  std::vector<Milliseconds> alarms;
  IdClock* self = nullptr;
  IdClock id_clock({}, [&](const IdClockReport& report) {
    alarms.push_back(report.skew);
    self->Report();  // would hang if the lock were held
  });
  self = &id_clock;
  id_clock.Advance(clock.Read());
  clock.StepWall(-Milliseconds(60'000));
  id_clock.Advance(clock.Read());
  id_clock.Advance(clock.Read());
  EXPECT_EQ(alarms, std::vector<Milliseconds>{Milliseconds(60'000)});
}

TEST(IdClock, ReportsThatItIsStopped) {
  VirtualClock clock(kStart);
  IdClock id_clock({.policy = ClockPolicy::kStrict});
  id_clock.Advance(clock.Read());
  EXPECT_FALSE(id_clock.Stopped());
  clock.StepWall(-Milliseconds(2));
  id_clock.Advance(clock.Read());
  EXPECT_TRUE(id_clock.Stopped());
}

TEST(IdClock, NeverGoesBackForManyThreads) {
  IdClock id_clock;
  std::atomic<int> backwards{0};
  const auto read = [&] {
    WallMs newest{0};
    for (int i = 0; i < 20'000; ++i) {
      const Now now = SystemClock().Read();
      if (i % 2 == 0) id_clock.Advance(now);
      if (i % 2 == 1) id_clock.TryAdvance(now);
      const WallMs last = id_clock.Last();
      if (last < newest) ++backwards;
      newest = last;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(read);
  threads.clear();
  EXPECT_EQ(backwards, 0);
}

}  // namespace
}  // namespace firn
