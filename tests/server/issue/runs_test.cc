#include "server/issue/runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firn {
namespace {

using testing::ElementsAre;

TEST(Runs, JoinsIdsAtTheSameDistance) {
  Runs runs;
  runs.Add({10, 2, 5});
  runs.Add({20, 3, 5});
  runs.Add({35, 1, 1});
  EXPECT_THAT(runs.runs(), ElementsAre(IdRun{10, 5, 5}, IdRun{35, 1, 1}));
  EXPECT_EQ(runs.count(), 6);
}

TEST(Runs, KeepTheirOrderWhenTheyAreManyAndAreEmptyWhenCleared) {
  Runs runs;
  for (int64_t i = 0; i < 20; ++i) runs.Add({100 * i, 2, 1});
  EXPECT_EQ(runs.size(), 20u);
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(runs[i].first, static_cast<int64_t>(100 * i));
  runs.Clear();
  EXPECT_TRUE(runs.empty());
  runs.Add({7, 1, 1});
  EXPECT_THAT(runs.runs(), ElementsAre(IdRun{7, 1, 1}));
}

TEST(Runs, YieldIdsInOrder) {
  Runs runs;
  runs.Add({1, 2, 1024});
  runs.Add({5, 1, 1});
  std::vector<int64_t> ids;
  runs.ForEach([&](int64_t id) { ids.push_back(id); });
  EXPECT_THAT(ids, ElementsAre(1, 1025, 5));
}

TEST(Runs, ACountThatOverflowsSaturates) {
  Runs runs;
  runs.Add({1, INT64_MAX, 3});
  runs.Add({1, INT64_MAX, 7});
  EXPECT_EQ(runs.count(), INT64_MAX);
}

}  // namespace
}  // namespace firn
