#include "server/plugins/limit.h"

#include <limits>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

class LimitTest : public testing::Test {
 protected:
  void Limit(int64_t per_second, int64_t burst) {
    plugin_.emplace(clock_, LimitPlugin::Options{.per_second = per_second, .burst = burst});
  }
  std::optional<Refusal> Ask(int64_t count = 1) {
    return plugin_->Before({.tag = "order", .count = count});
  }
  bool Passes(int64_t count = 1) { return !Ask(count); }
  void GiveBack(int64_t count) { plugin_->OnRefusal({.tag = "order", .count = count}, {}); }
  int64_t PassedOf(int64_t attempts) {
    int64_t passed = 0;
    for (int64_t i = 0; i < attempts; ++i) passed += Passes();
    return passed;
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  std::optional<LimitPlugin> plugin_;
};

TEST_F(LimitTest, PassesABurstAndThenTheRate) {
  Limit(1000, 10);
  EXPECT_EQ(PassedOf(50), 10);
  for (int i = 0; i < 7; ++i) {
    clock_.Advance(Milliseconds(3));
    EXPECT_EQ(PassedOf(50), 3);
  }
  clock_.Advance(Milliseconds(3'600'000));
  EXPECT_EQ(PassedOf(50), 10) << "an idle hour fills only one bucket";
}

TEST_F(LimitTest, ACallTakesAllItsIdsOrNone) {
  Limit(1000, 10);
  EXPECT_TRUE(Passes(7));
  EXPECT_FALSE(Passes(4));
  EXPECT_TRUE(Passes(3));
  EXPECT_FALSE(Passes(1));
}

TEST_F(LimitTest, ReportsATimeAfterWhichTheCallPasses) {
  Limit(10, 10);
  EXPECT_TRUE(Passes(10));
  const auto refusal = Ask(5);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->reason, Reason::kRejected);
  EXPECT_FALSE(refusal->another_server_may_help);
  EXPECT_GE(refusal->retry_after_ms, 500);
  EXPECT_LE(refusal->retry_after_ms, 501);
  clock_.Advance(Milliseconds(refusal->retry_after_ms - 2));
  EXPECT_FALSE(Passes(5));
  clock_.Advance(Milliseconds(2));
  EXPECT_TRUE(Passes(5));
}

TEST_F(LimitTest, RefusesACallLargerThanTheBucket) {
  Limit(1000, 10);
  const auto refusal = Ask(11);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->retry_after_ms, 0);
  EXPECT_THAT(refusal->message, HasSubstr("at most 10 ids"));
  EXPECT_FALSE(Passes(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(PassedOf(50), 10) << "a refused call takes nothing";
}

TEST_F(LimitTest, ReturnsIdsThatACallDidNotGet) {
  Limit(1, 10);
  EXPECT_TRUE(Passes(10));
  GiveBack(4);
  EXPECT_EQ(PassedOf(50), 4);
}

TEST_F(LimitTest, AStepOfTheWallClockChangesNothing) {
  Limit(1000, 10);
  EXPECT_EQ(PassedOf(50), 10);
  clock_.StepWall(Milliseconds(3'600'000));
  EXPECT_EQ(PassedOf(50), 0);
  clock_.StepWall(Milliseconds(-7'200'000));
  clock_.Advance(Milliseconds(1));
  EXPECT_EQ(PassedOf(50), 1);
}

TEST_F(LimitTest, NeverPassesMoreThanBucketAndRateAllow) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int round = 0; round < 60; ++round) {
    const auto per_second = static_cast<int64_t>(1 + entropy.Below(round % 3 ? 2'000 : 90'000'000));
    const auto burst = static_cast<int64_t>(1 + entropy.Below(500));
    Limit(per_second, burst);
    int64_t passed = 0, ms = 0;
    for (int i = 0; i < 3000; ++i) {
      const auto count = static_cast<int64_t>(1 + entropy.Below(20));
      if (Passes(count)) passed += count;
      if (entropy.Below(10) != 0) continue;
      const auto step = static_cast<int64_t>(entropy.Below(30));
      clock_.Advance(Milliseconds(step));
      ms += step;
      ASSERT_LE(passed, burst + ms * per_second / 1000 + 1) << per_second << " a second";
    }
  }
}

TEST_F(LimitTest, ThreadsShareOneBucket) {
  Limit(1, 10'000);
  std::atomic<int64_t> passed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        if (!Passes(3)) continue;
        if (i % 5 == 0) {
          GiveBack(3);
        } else {
          passed += 3;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(passed, 9'999);
  EXPECT_EQ(PassedOf(10), 1);
}

TEST_F(LimitTest, TheDefaultBurstIsOneSecondsIds) {
  TagDefinition tag{.name = "order", .strategy = "snowflake"};
  tag.limit_per_second = 5;
  const auto plugin = *MakeLimit(clock_, tag);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(plugin->Before({.tag = "order"}).has_value());
  EXPECT_TRUE(plugin->Before({.tag = "order"}).has_value());
}

}  // namespace
}  // namespace firn
