// Tiered tags whose Redis still has earlier segments: real Redis in front of real databases and of
// the registry, under the real ledger.

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <gmock/gmock.h>

#include "server/store/ledgered_source.h"
#include "server/store/redis/tiered_source.h"
#include "server/store/registry_source.h"
#include "tests/server/store/ledger_rig.h"
#include "tests/server/store/table_store_fixture.h"
#include "tests/support/database/redis.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

using testing::IsEmpty;

// Where segments come from.
enum class Durable { kRegistry, kMariaDb, kPostgres };

// A server: its connection to the registry, its ledger, and a tiered source on its control thread,
// which is the test's.
class TieredHost {
 public:
  TieredHost(LedgerCluster& cluster, int redis_port, std::unique_ptr<RangeStore> durable)
      : clock_(cluster.clock()), host_(cluster) {
    const PostToControl control = [this](std::function<void()> task) {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    };
    std::unique_ptr<RangeSource> below;
    if (durable == nullptr) {
      below = std::make_unique<RegistrySource>(host_.ledger(), control);
    } else {
      below = std::make_unique<LedgeredSource>(std::move(durable), host_.ledger(), control,
                                               SystemClock());
    }
    TieredHash::Options options{
        .place = {.address = {"127.0.0.1", static_cast<uint16_t>(redis_port)},
                  .time_limit = Milliseconds(30'000)},
        .backoff = {Milliseconds(1), Milliseconds(10)}};
    source_ = std::make_unique<TieredSource>(
        "tier", std::make_unique<TieredHash>(std::move(options), SystemClock(), SystemEntropy()),
        std::move(below),
        [this](const TagDefinition& asked, Ledger::PlaceDone done) {
          host_.ledger().WhereNow(asked, std::move(done));
        },
        control, [this](const std::string& sentence) { alarms.push_back(sentence); });
  }

  Result<Range> Take(int64_t size) {
    std::optional<Result<Range>> told;
    source_->Take(tag, size, [&](Result<Range> range) { told = std::move(range); });
    EXPECT_TRUE(Until([&] { return told.has_value(); }));
    return told.value_or(Internal("no answer"));
  }
  // Repeats until there are numbers.
  Range Numbers(int64_t size = 5) {
    Result<Range> range = Unavailable("");
    EXPECT_TRUE(Eventually(kPatience, [&] { return (range = Take(size)).ok(); })) << range.status();
    return range.value_or({});
  }
  bool Until(const std::function<bool()>& done) {
    return Eventually(kPatience, [&] {
      Round();
      return done();
    });
  }
  FaultyCoordinator& registry() { return host_.registry(); }

  TagDefinition tag{.name = "order", .strategy = "segment", .step = 20};
  std::vector<std::string> alarms;

 private:
  void Round() {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (tasks_.empty()) break;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
    host_.Round();
    clock_.Advance(Milliseconds(1));
  }

  VirtualClock& clock_;
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
  LedgerHost host_;
  std::unique_ptr<TieredSource> source_;  // ends first
};

class TieredFenceTest : public testing::TestWithParam<Durable> {
 protected:
  void SetUp() override {
    redis_ = StartRedis();
    ASSERT_NE(redis_, nullptr);
    const auto keep = [this](auto started) {
      ASSERT_TRUE(started.ok()) << started.status();
      database_ = *std::move(started);
    };
    if (GetParam() == Durable::kMariaDb) keep(MariaDb::Start());
    if (GetParam() == Durable::kPostgres) keep(Postgres::Start());
    if (GetParam() == Durable::kRegistry) return;
    ASSERT_NE(database_, nullptr);
    ASSERT_EQ(database_->Run(CreateTableSql(TableForm::kFirn, "ranges", dialect())), Status());
  }

  SqlDialect dialect() const {
    return GetParam() == Durable::kMariaDb ? SqlDialect::kMysql : SqlDialect::kPostgres;
  }
  static std::unique_ptr<Redis> StartRedis() {
    auto started = Redis::Start({.append_only = false});
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }
  std::unique_ptr<RangeStore> OpenDatabase() {
    if (database_ == nullptr) return nullptr;
    DatabasePlace place{.address = {"127.0.0.1", static_cast<uint16_t>(database_->port())},
                        .database = SqlServer::kDatabase,
                        .credentials_file = database_->credentials_file(),
                        .time_limit = Milliseconds(30'000)};
    std::unique_ptr<SqlConnection> connection;
    if (dialect() == SqlDialect::kMysql) {
      connection = std::make_unique<MysqlConnection>(std::move(place));
    } else {
      connection = std::make_unique<PostgresConnection>(std::move(place), SystemClock());
    }
    return std::make_unique<TableStore>(
        TableStore::Options{.name = "main", .backoff = {Milliseconds(10), Milliseconds(50)}},
        std::move(connection), *RangeTable::Make(dialect(), TableForm::kFirn, "ranges"),
        SystemClock(), SystemEntropy(), [](const std::string&) {});
  }
  std::unique_ptr<TieredHost> StartHost(int redis_port) {
    return std::make_unique<TieredHost>(cluster_, redis_port, OpenDatabase());
  }
  // Moves the ledger as another store of the tag does.
  void IssueElsewhere(int64_t end) { cluster_.Move("order", end); }

  LedgerCluster cluster_;
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<SqlServer> database_;
};

TEST_P(TieredFenceTest, RestartedServerSkipsSegmentsFromBeforeAnotherStore) {
  EXPECT_EQ(StartHost(redis_->port())->Numbers(1), (Range{1, 2})) << "19 stay in Redis";
  IssueElsewhere(1'006);
  const auto host = StartHost(redis_->port());
  EXPECT_GE(host->Numbers().begin, 1'006);
  EXPECT_THAT(host->alarms, IsEmpty());
}

TEST_P(TieredFenceTest, FailBackToAnOldPrimarySkipsItsSegments) {
  const auto other = StartRedis();
  ASSERT_NE(other, nullptr);
  TcpProxy proxy(redis_->port());
  const auto host = StartHost(proxy.port());
  ASSERT_EQ(host->Numbers(1), (Range{1, 2}));
  proxy.Redirect(other->port());
  proxy.Cut();
  const Range away = host->Numbers(1);
  EXPECT_GE(away.begin, 21);
  proxy.Redirect(redis_->port());
  proxy.Cut();
  EXPECT_GT(host->Numbers().begin, away.begin);
  EXPECT_THAT(host->alarms, IsEmpty());
  EXPECT_GT(StartHost(redis_->port())->Numbers().begin, away.begin);
}

TEST_P(TieredFenceTest, ServerThatStayedWithAnOldPrimaryIssuesNothingBelowItsNextSegment) {
  const auto stayed = StartHost(redis_->port());
  ASSERT_EQ(stayed->Numbers(1), (Range{1, 2}));
  IssueElsewhere(1'006);
  // Uses up the current segment to the mark at which the next one is fetched.
  const Range last = stayed->Numbers(5);
  EXPECT_EQ(last, (Range{2, 7}));
  ASSERT_TRUE(stayed->Until([&] { return cluster_.High("order") > 1'006; }));
  ASSERT_TRUE(stayed->Until([&] {
    return std::stoll(redis_->Run({"HGET", "firn:order:tiered", "max"}).value_or("0")) > 1'006;
  }));
  EXPECT_GE(stayed->Numbers(5).begin, 1'006);
  EXPECT_GE(StartHost(redis_->port())->Numbers().begin, 1'006);
}

TEST_P(TieredFenceTest, NothingIsTakenOnANewConnectionWithoutTheLedger) {
  TcpProxy proxy(redis_->port());
  const auto host = StartHost(proxy.port());
  ASSERT_EQ(host->Numbers(1), (Range{1, 2}));
  host->registry().Disconnect();
  EXPECT_EQ(host->Numbers(1), (Range{2, 3})) << "the connection is still the fenced one";
  proxy.Cut();
  EXPECT_TRUE(host->Until([&] { return proxy.connections() == 0; }));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(host->Take(1).ok());
  host->registry().Reconnect();
  EXPECT_GE(host->Numbers(1).begin, 3);
}

std::string NameOf(const testing::TestParamInfo<Durable>& tested) {
  switch (tested.param) {
    case Durable::kRegistry:
      return "registry";
    case Durable::kMariaDb:
      return "mariadb";
    case Durable::kPostgres:
      return "postgres";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Durables, TieredFenceTest,
                         testing::Values(Durable::kRegistry, Durable::kMariaDb, Durable::kPostgres),
                         NameOf);

}  // namespace
}  // namespace firn
