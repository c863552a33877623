#include "server/plugins/rate.h"

#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firn {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

void Give(RatePlugin& plugin, int64_t count) {
  Runs runs;
  runs.Add({100, count, 1});
  ASSERT_FALSE(plugin.After({.tag = "t", .count = count}, runs).has_value());
  ASSERT_EQ(runs.count(), count);
}

class RateTest : public testing::Test {
 protected:
  double RateAt(int64_t ms) {
    const std::vector<TagRate> rates = board_.Read(BootMs(ms));
    EXPECT_EQ(rates.size(), 1u);
    return rates.empty() ? -1 : rates[0].ids_per_second;
  }

  RateBoard board_;
  std::shared_ptr<RatePlugin> order_ = board_.ForTag("order");
};

TEST_F(RateTest, AveragesSinceThePreviousRead) {
  EXPECT_THAT(RateAt(10'000), DoubleEq(0));
  Give(*order_, 3000);
  EXPECT_THAT(RateAt(12'000), DoubleEq(1500));
  EXPECT_THAT(RateAt(14'000), DoubleEq(750));
}

TEST_F(RateTest, IgnoresReadingsOlderThanTheWindow) {
  RateAt(0);
  Give(*order_, 10'000);
  for (int64_t ms = 1000; ms <= 10'000; ms += 1000) RateAt(ms);
  EXPECT_THAT(RateAt(10'000), DoubleEq(1000));
  for (int64_t ms = 11'000; ms <= 12'000; ms += 1000) RateAt(ms);
  EXPECT_THAT(RateAt(13'000), DoubleEq(0));
}

TEST_F(RateTest, AnInfrequentReaderAveragesTheWholeTime) {
  RateAt(0);
  Give(*order_, 60'000);
  EXPECT_THAT(RateAt(60'000), DoubleEq(1000));
  Give(*order_, 120'000);
  EXPECT_THAT(RateAt(120'000), DoubleEq(2000));
}

TEST_F(RateTest, ManyReadersDoNotShortenEachOthersWindow) {
  RateAt(0);
  Give(*order_, 1000);
  for (int64_t ms = 1; ms < 5000; ++ms) RateAt(ms);
  EXPECT_THAT(RateAt(5000), DoubleEq(200));
}

TEST_F(RateTest, TwoReadsAtOneMomentDoNotDivideByZero) {
  RateAt(7);
  Give(*order_, 10);
  EXPECT_THAT(RateAt(7), DoubleEq(0));
}

TEST_F(RateTest, ListsTagsByNameAndForgetsUnreferencedOnes) {
  auto user = board_.ForTag("user");
  auto bill = board_.ForTag("bill");
  Give(*bill, 5);
  EXPECT_THAT(board_.Read(BootMs(1)),
              ElementsAre(TagRate{"bill", 5, 0}, Field(&TagRate::tag, "order"),
                          Field(&TagRate::tag, "user")));
  EXPECT_EQ(board_.ForTag("bill"), bill) << "a changed tag continues its counts";
  bill.reset();
  user.reset();
  order_.reset();
  EXPECT_THAT(board_.Read(BootMs(2)), IsEmpty());
}

TEST_F(RateTest, SumsTheCountsOfAllThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) Give(*order_, 3);
    });
  }
  for (int64_t ms = 0; ms < 100; ++ms) board_.Read(BootMs(ms * 1000));
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order_->ids(), 8 * 5000 * 3);
}

}  // namespace
}  // namespace firn
