// Tests whole servers whose database fails over to a replica that has lost writes, and back.

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/store/table/range_table.h"
#include "tests/drill/segment_cluster.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

const std::vector<std::string> kFailoverTags{"table", "leaf"};
constexpr const char* kFailoverTagsIni =
    "[table]\nstrategy = segment\nstep = 200\nstep_max = 200\nstore = main\n"
    "[leaf]\nstrategy = segment\nstep = 200\nstep_max = 200\nstore = alloc\n";
constexpr const char* kAlarm = "the database has gone back in time";

// Two groups of servers, each with its own address of the database, as after a failover that some
// servers have not detected.
class FailoverDrill : public SegmentCluster, public testing::WithParamInterface<SqlDialect> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDatabases());
    for (int group = 0; group < 2; ++group) {
      addresses_.push_back(std::make_unique<TcpProxy>(primary().port()));
      StartTwoServers(StoreLines(primary(), addresses_.back()->port()));
    }
    for (const auto& server : servers()) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }

  void StartDatabases() {
    ASSERT_NO_FATAL_FAILURE(StartStores());
    auto replica = primary().StartReplica();
    ASSERT_TRUE(replica.ok()) << replica.status();
    replica_ = *std::move(replica);
    ASSERT_NO_FATAL_FAILURE(ApplyTags(kFailoverTagsIni));
  }
  // `lines`: the lines of the stores file that configure the database.
  void StartTwoServers(const std::string& lines) {
    const std::string file = folder("stores" + std::to_string(servers().size()) + ".ini");
    std::ofstream(file) << "[main]\n"
                        << lines << "[alloc]\n"
                        << lines << "form = leaf\ntable = leaf_alloc\n";
    for (int i = 0; i < 2; ++i) StartServer(file, {"--issue_wait_ms=1000"});
  }

  SqlServer& primary() { return GetParam() == SqlDialect::kMysql ? mariadb() : postgres(); }

  void Move(size_t group, SqlServer& to) {
    addresses_[group]->Redirect(to.port());
    addresses_[group]->Cut();
  }

  // Waits until the servers together have made `count` more allocations of each tag.
  testing::AssertionResult Allocate(int count) {
    for (const std::string& tag : kFailoverTags) {
      const int64_t before = Ranges(tag);
      if (!Eventually(kPatience, [&] { return Ranges(tag) >= before + count; })) {
        return testing::AssertionFailure() << tag << " gets no more ranges" << servers()[0]->log();
      }
    }
    return testing::AssertionSuccess();
  }
  int64_t Ranges(const std::string& tag) {
    int64_t sum = 0;
    for (size_t i = 0; i < servers().size(); ++i) {
      sum += static_cast<int64_t>(Metric(i, "firn_segment_ranges_total", tag));
    }
    return sum;
  }

  // Returns the number of alarms about both tags in the logs of a group's servers.
  int Alarms(size_t group) {
    int count = 0;
    for (size_t i = 2 * group; i < 2 * group + 2; ++i) {
      const std::string log = servers()[i]->log();
      for (size_t at = log.find(kAlarm); at != log.npos; at = log.find(kAlarm, at + 1)) ++count;
    }
    return count;
  }
  bool Alarmed(size_t group, int before) {
    return Eventually(kPatience, [&] { return Alarms(group) > before; });
  }

  std::unique_ptr<SqlServer> replica_;
  std::vector<std::unique_ptr<TcpProxy>> addresses_;
};

TEST_P(FailoverDrill, APromotedReplicaAndTheOldPrimaryRepeatNoNumber) {
  StartLoad(
      {.tags = kFailoverTags, .count = 70, .pause = Milliseconds(1), .awkward = kFailoverTags[0]});
  ASSERT_TRUE(Allocate(4));
  ASSERT_EQ(replica_->AwaitCaughtUp(primary()), Status());
  ASSERT_EQ(replica_->StopFollowing(), Status());
  ASSERT_TRUE(Allocate(6)) << "which never reach the replica";

  // Half of the servers switch to the replica while the other half still uses the old primary.
  ASSERT_EQ(replica_->Promote(), Status());
  Move(1, *replica_);
  EXPECT_TRUE(Alarmed(1, 0)) << "the replica is behind";
  EXPECT_TRUE(Allocate(8)) << "from two primaries at once";

  primary().Kill();
  Move(0, *replica_);
  EXPECT_TRUE(Allocate(8));

  // All servers return to the old primary, which has none of the later changes.
  const int before[] = {Alarms(0), Alarms(1)};
  ASSERT_EQ(primary().Restart(), Status());
  for (const size_t group : {0u, 1u}) Move(group, primary());
  EXPECT_TRUE(Eventually(kPatience, [&] { return Alarms(0) + Alarms(1) > before[0] + before[1]; }))
      << "the old primary is behind";
  EXPECT_TRUE(Allocate(8));
  StopLoad();
  for (const std::string& tag : kFailoverTags) JudgeTag(tag);
  std::printf("drill of fail-over: alarms %d\n", Alarms(0) + Alarms(1));
}

// Servers that know both addresses of the database.
class PromotionDrill : public FailoverDrill {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDatabases());
    std::string lines = StoreLines(primary(), primary().port());
    const std::string first = primary().address();
    lines.replace(lines.find(first), first.size(), first + "," + replica_->address());
    StartTwoServers(lines);
    for (const auto& server : servers()) ASSERT_TRUE(server->BecomesReady()) << server->log();
  }
};

TEST_P(PromotionDrill, ServersFollowAPromotedReplicaThatLacksWrites) {
  StartLoad(
      {.tags = kFailoverTags, .count = 70, .pause = Milliseconds(1), .awkward = kFailoverTags[0]});
  ASSERT_TRUE(Allocate(4));
  ASSERT_EQ(replica_->AwaitCaughtUp(primary()), Status());
  ASSERT_EQ(replica_->StopFollowing(), Status());
  ASSERT_TRUE(Allocate(6)) << "which never reach the replica";
  primary().Kill();
  const BootMs killed = TestNow();
  ASSERT_EQ(replica_->Promote(), Status());
  const BootMs promoted = TestNow();
  ASSERT_TRUE(Allocate(2));
  std::printf(
      "drill of promotion: first ranges %lld ms after the kill, %lld ms after the promotion\n",
      static_cast<long long>((TestNow() - killed).count()),
      static_cast<long long>((TestNow() - promoted).count()));
  EXPECT_TRUE(Allocate(8));
  StopLoad();
  for (const std::string& tag : kFailoverTags) JudgeTag(tag);
}

std::string NameOfDatabase(const testing::TestParamInfo<SqlDialect>& tested) {
  return tested.param == SqlDialect::kMysql ? "mariadb" : "postgres";
}

INSTANTIATE_TEST_SUITE_P(Databases, FailoverDrill,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);
INSTANTIATE_TEST_SUITE_P(Databases, PromotionDrill,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
