#include "common/time/clock.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

// A clock whose first reads of the wall clock are interrupted for some time.
class InterruptedClock final : public Clock {
 public:
  explicit InterruptedClock(int interruptions) : interruptions_(interruptions) {}

  WallMs Wall() const override {
    const WallMs wall(1'000'000 + boot_ms_);
    if (interruptions_-- > 0) boot_ms_ += 500;
    return wall;
  }
  BootMs Boot() const override { return BootMs(boot_ms_); }

 private:
  mutable int64_t boot_ms_ = 0;
  mutable int interruptions_;
};

TEST(ClockTest, ReadsBothClocksAtOneMoment) {
  for (const int interruptions : {0, 1, 3}) {
    const Now now = InterruptedClock(interruptions).Read();
    EXPECT_EQ(now.wall.ms() - 1'000'000, now.boot.ms()) << interruptions;
  }
}

TEST(ClockTest, StopsReadingAfterSomeAttempts) {
  const Now now = InterruptedClock(1'000'000).Read();
  EXPECT_LT(now.wall.ms() - 1'000'000, now.boot.ms());
}

TEST(SystemClockTest, BootTimeNeverGoesBackAndWallTimeIsOfThisCentury) {
  BootMs before = SystemClock().Boot();
  for (int i = 0; i < 1'000; ++i) {
    const BootMs now = SystemClock().Boot();
    ASSERT_GE(now, before);
    before = now;
  }
  EXPECT_GT(SystemClock().Wall(), WallMs(1'577'836'800'000)) << "2020-01-01";
  EXPECT_LT(SystemClock().Wall(), WallMs(4'102'444'800'000)) << "2100-01-01";
}

TEST(SystemClockTest, TheNextMillisecondIsWithinOneMillisecond) {
  for (int i = 0; i < 1'000; ++i) {
    const std::chrono::microseconds wait = SystemClock().ToNextWallMs();
    ASSERT_GT(wait.count(), 0);
    ASSERT_LE(wait, Milliseconds(1));
  }
}

}  // namespace
}  // namespace firn
