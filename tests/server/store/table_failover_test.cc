#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>

#include "server/store/table/failover_connection.h"
#include "tests/server/store/table_store_fixture.h"

namespace firn {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

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

// A store with both addresses takes ranges without a pause, while the primary is killed and a
// replica that lacks some of them is promoted.
TEST_P(TableFailoverTest, FollowsAPromotionUnderLoad) {
  const std::unique_ptr<SqlServer> primary = StartServer(GetParam());
  ASSERT_NE(primary, nullptr);
  ASSERT_EQ(primary->Run(CreateTableSql(form_, kTable, GetParam())), Status());
  auto made = primary->StartReplica();
  ASSERT_TRUE(made.ok()) << made.status();
  SqlServer& replica = **made;

  std::vector<std::unique_ptr<SqlConnection>> servers;
  servers.push_back(Connection(PlaceOf(replica)));  // refused, since it takes no writes
  servers.push_back(Connection(PlaceOf(*primary)));
  const auto store = Open(std::make_unique<FailoverConnection>(std::move(servers)));
  std::vector<Range> used;
  const auto use = [&](int count) {
    for (int i = 0; i < count; ++i) {
      std::optional<Range> range;
      ASSERT_TRUE(Eventually(kPatience, [&] { return (range = Use(*store)).has_value(); }));
      used.push_back(*range);
    }
  };
  use(20);
  ASSERT_EQ(replica.AwaitCaughtUp(*primary), Status());
  ASSERT_EQ(replica.StopFollowing(), Status());
  use(20);  // these never reach the replica
  primary->Kill();
  const BootMs killed = TestNow();
  EXPECT_FALSE(Use(*store).has_value());
  EXPECT_TRUE(store->away()) << "the replica's refusal is no reason to act";
  ASSERT_EQ(replica.Promote(), Status());
  use(1);
  std::cout << "outage of " << (TestNow() - killed).count() << " ms, promotion included\n";
  use(19);
  EXPECT_THAT(alarms_, SizeIs(1));
  ExpectNoOverlap(used);
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
