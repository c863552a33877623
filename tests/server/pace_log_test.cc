#include "server/pace_log.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

using Sample = PaceHistory::Sample;

class PaceLogTest : public testing::Test {
 protected:
  int64_t measured_ = 0;  // whole periods
  ServerPace pace_{.over = PaceHistory::kEvery, .ids = 7, .calls = 9, .refused = 2, .p99_us = 64};
  PaceLog log_{BootMs(1'000), [this](BootMs, bool ends) {
                 measured_ += ends ? 1 : 0;
                 return pace_;
               }};
};

TEST_F(PaceLogTest, TakesOneSampleInEachPeriod) {
  log_.Tick(BootMs(10'999));
  EXPECT_EQ(measured_, 0);
  for (int64_t ms = 11'000; ms < 31'000; ms += 50) log_.Tick(BootMs(ms));
  EXPECT_EQ(measured_, 2);
  const PaceHistory history = log_.Read(BootMs(31'000));
  EXPECT_EQ(history.samples, (std::vector<Sample>{{7, 2, 64}, {7, 2, 64}}));
  EXPECT_EQ(history.age, Milliseconds(10'000));
}

TEST_F(PaceLogTest, TheNewestSampleIsOfThePeriodThatHasBegun) {
  EXPECT_EQ(log_.Read(BootMs(1'000)), PaceHistory());
  PaceHistory history = log_.Read(BootMs(1'200));
  EXPECT_EQ(history.samples, (std::vector<Sample>{{7, 2, 64}}));
  EXPECT_EQ(history.age, Milliseconds(-9'800));
  log_.Tick(BootMs(11'000));
  pace_.ids = 3;
  history = log_.Read(BootMs(14'000));
  EXPECT_EQ(history.samples, (std::vector<Sample>{{7, 2, 64}, {3, 2, 64}}));
  EXPECT_EQ(history.age, Milliseconds(-7'000));
  EXPECT_EQ(measured_, 1);
}

TEST_F(PaceLogTest, ThePeriodThatHasBegunTakesThePlaceOfTheOldest) {
  for (int i = 1; i <= 90; ++i) {
    pace_.ids = i;
    log_.Tick(BootMs(1'000 + 10'000 * i));
  }
  pace_.ids = 91;
  const PaceHistory history = log_.Read(BootMs(901'500));
  ASSERT_EQ(history.samples.size(), 90U);
  EXPECT_EQ(history.samples.front().ids, 2);
  EXPECT_EQ(history.samples.back().ids, 91);
}

TEST_F(PaceLogTest, ALateSampleDoesNotShiftTheNextOnes) {
  log_.Tick(BootMs(13'000));
  log_.Tick(BootMs(21'000));
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(log_.Read(BootMs(21'000)).age, Milliseconds(0));
}

TEST_F(PaceLogTest, KeepsFifteenMinutes) {
  for (int i = 1; i <= 200; ++i) {
    pace_.ids = i;
    log_.Tick(BootMs(1'000 + 10'000 * i));
  }
  const PaceHistory history = log_.Read(BootMs(2'001'000));
  ASSERT_EQ(history.samples.size(), 90U);
  EXPECT_EQ(history.samples.front().ids, 111);
  EXPECT_EQ(history.samples.back().ids, 200);
}

TEST_F(PaceLogTest, APausedProcessHasEmptySamples) {
  log_.Tick(BootMs(11'000));
  log_.Tick(BootMs(41'000));
  EXPECT_EQ(measured_, 2);
  EXPECT_EQ(log_.Read(BootMs(41'000)).samples,
            (std::vector<Sample>{{7, 2, 64}, {}, {}, {7, 2, 64}}));
  log_.Tick(BootMs(90'000'001'000));
  EXPECT_EQ(log_.Read(BootMs(90'000'001'000)).samples.size(), 90U);
}

TEST_F(PaceLogTest, APeriodWithoutRequestsHasNoLatency) {
  pace_ = {.over = PaceHistory::kEvery};
  log_.Tick(BootMs(11'000));
  EXPECT_EQ(log_.Read(BootMs(11'000)).samples, (std::vector<Sample>{{0, 0, 0}}));
}

}  // namespace
}  // namespace firn
