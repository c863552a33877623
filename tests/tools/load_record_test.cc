#include "tools/bench/load_record.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(LoadRecord, CountsMeasuredCallsAndKeepsEveryId) {
  LoadRecord record(10);
  const int64_t ids[] = {5, 6, 7};
  record.Answered(100, ids, 3, /*measured=*/false);
  record.Answered(200, ids, 1, /*measured=*/true);
  record.Failed(300, Unavailable("connection refused"), /*measured=*/true);
  EXPECT_EQ(record.calls(), 2u);
  EXPECT_EQ(record.ids(), 1u);
  EXPECT_EQ(record.failed(), 1u);
  EXPECT_EQ(record.first_failure(), "connection refused");
  EXPECT_EQ(record.latency().total(), 2u);
  EXPECT_EQ(record.CountDuplicates(), 1u);
}

TEST(LoadRecord, AnIdOfTwoThreadsIsADuplicate) {
  LoadRecord one(10);
  LoadRecord two(10);
  const int64_t ids[] = {5, 6};
  one.Answered(1, ids, 2, true);
  two.Answered(1, ids + 1, 1, true);
  EXPECT_EQ(one.CountDuplicates(), 0u);
  one.Add(two);
  EXPECT_EQ(one.CountDuplicates(), 1u);
  EXPECT_EQ(one.latency().total(), 2u);
}

TEST(LoadRecord, ReportsThatItDidNotKeepEveryId) {
  LoadRecord record(2);
  const int64_t ids[] = {5, 6, 6};
  record.Answered(1, ids, 2, true);
  EXPECT_TRUE(record.kept_all());
  record.Answered(1, ids, 3, true);
  EXPECT_FALSE(record.kept_all());
  EXPECT_EQ(record.kept(), 2u);
  EXPECT_EQ(record.ids(), 5u);
}

}  // namespace
}  // namespace firn
