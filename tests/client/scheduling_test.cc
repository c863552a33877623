#include "tests/client/scheduling.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "tests/support/process.h"

namespace firn {
namespace {

// The result is the same whether the thread runs or waits for a processor.
TEST(Scheduling, ReportsAThreadThatNeverSleepsAsAlwaysAwake) {
  constexpr Micros kSpell{2'000'000}, kTick{12'000};
  constexpr Milliseconds kSample{50};
  std::atomic<pid_t> spinning = 0;
  std::atomic<uint64_t> turns = 0;
  std::jthread spinner([&](const std::stop_token& stop) {
    spinning = gettid();
    while (!stop.stop_requested()) ++turns;
  });
  ASSERT_TRUE(Eventually(kPatience, [&] { return spinning != 0; }));
  Scheduling scheduling;
  scheduling.Watch({spinning});
  const auto now = [] { return SystemClock().BootMicros(); };
  const Micros from = now();
  ASSERT_TRUE(Eventually(kPatience, [&] { return now() - from > kSpell; }));
  const Micros until = now();
  // The kernel counts a wait for a processor once the thread has got one.
  const uint64_t before = turns;
  ASSERT_TRUE(Eventually(kPatience, [&] { return turns > before; }));
  SleepFor(kSample);
  scheduling.Stop();
  EXPECT_GE(scheduling.Kept(from, until), until - from - kTick);
}

}  // namespace
}  // namespace firn
