#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "tests/server/store/table_store_fixture.h"

namespace firn {
namespace {

using testing::IsEmpty;

class TableFailoverTest : public TableStoreFixture {};

void ExpectNoOverlap(std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < ranges.size(); ++i) EXPECT_GE(ranges[i].begin, ranges[i - 1].end);
}

TEST_P(TableFailoverTest, JumpsOverAReplicaThreeAllocationsBehindAndTheOldPrimary) {
  auto made = server_->StartReplica();
  ASSERT_TRUE(made.ok()) << made.status();
  SqlServer& replica = **made;
  std::vector<Range> used;
  const auto use = [&](TableStore& store) {
    std::optional<Range> range;
    EXPECT_TRUE(Eventually(kPatience, [&] { return (range = Use(store)).has_value(); }));
    used.push_back(range.value_or(Range{}));
  };
  for (int i = 0; i < 5; ++i) use(*store_);
  ASSERT_EQ(replica.AwaitCaughtUp(*server_), Status());
  ASSERT_EQ(replica.StopFollowing(), Status());
  for (int i = 0; i < 3; ++i) use(*store_);  // these never reach the replica
  server_->Kill();
  EXPECT_FALSE(Use(*store_).has_value());

  ASSERT_EQ(replica.Promote(), Status());
  const auto promoted = Open(PlaceOf(replica));
  for (int i = 0; i < 4; ++i) use(*promoted);
  EXPECT_THAT(alarms_, IsEmpty()) << "a store that gave nothing knows no loss";

  ASSERT_EQ(server_->Restart(), Status());  // and all clients return to it
  for (int i = 0; i < 4; ++i) use(*store_);
  EXPECT_THAT(alarms_, IsEmpty()) << "the old primary has all that it gave";
  ExpectNoOverlap(used);
  EXPECT_EQ(used.size(), 16u);
}

TEST_P(TableFailoverTest, AServerKilledDuringAdvanceRepeatsNoNumber) {
  constexpr int kThreads = 8;
  std::atomic<bool> going_on = true;
  std::atomic<int> count = 0;
  std::mutex mutex;
  std::vector<Range> all;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const auto store = Open(PlaceOf(*server_));
      while (going_on) {
        const Result<Range> range = store->Advance(tag_, 1, 10);
        if (!range.ok()) {
          SleepBriefly();
          continue;
        }
        const std::scoped_lock lock(mutex);
        all.push_back(*range);
        ++count;
      }
    });
  }
  for (int kills = 0; kills < 3; ++kills) {
    const int before = count;
    EXPECT_TRUE(Eventually(kPatience, [&] { return count > before + 100; }));
    server_->Kill();
    EXPECT_EQ(server_->Restart(), Status());
  }
  const int before = count;
  EXPECT_TRUE(Eventually(kPatience, [&] { return count > before + 100; }));
  going_on = false;
  for (std::thread& thread : threads) thread.join();
  ExpectNoOverlap(all);
}

INSTANTIATE_TEST_SUITE_P(Databases, TableFailoverTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
