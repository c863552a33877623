// A tag that never issued is deleted while a server runs, and created again.

#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/time/clock.h"
#include "server/store/mysql/mysql_connection.h"
#include "server/store/postgres/postgres_connection.h"
#include "tests/server/program/running_server.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using testing::HasSubstr;

class DeletedTagTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string stores = dir_ / "stores.ini";
    std::ofstream(stores) << StartStore();
    ASSERT_FALSE(HasFatalFailure());
    server_ = std::make_unique<RunningServer>(
        dir_ / "state",
        std::vector<std::string>{"--registry=" + registry(), "--stores_file=" + stores,
                                 "--issue_wait_ms=30000"});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  // Starts what the test's store needs. Returns the lines of a stores file.
  std::string StartStore() {
    if (GetParam() == "main") return StartTable<MariaDb>("mysql", SqlDialect::kMysql);
    if (GetParam() == "elephant") return StartTable<Postgres>("postgres", SqlDialect::kPostgres);
    if (GetParam() == "registry") return {};
    Take(Redis::Start(), redis_);
    if (redis_ == nullptr) return {};
    return "[cache]\nkind = redis\naddress = " + redis_->address() +
           "\n[fast]\nkind = tiered\nfront = cache\n";
  }
  template <typename Database>
  std::string StartTable(const std::string& kind, SqlDialect dialect) {
    Take(Database::Start(), table_);
    if (table_ == nullptr) return {};
    EXPECT_EQ(table_->Run(CreateTableSql(TableForm::kFirn, "firn_tag", dialect)), Status());
    return "[" + GetParam() + "]\nkind = " + kind + "\naddress = " + table_->address() +
           "\ndatabase = " + SqlServer::kDatabase +
           "\ncredentials_file = " + table_->credentials_file() +
           "\ntimeout_ms = 60000\n";  // half of it is the limit of a wait for a row
  }
  template <typename Started, typename Kept>
  static void Take(Started started, Kept& kept) {
    ASSERT_TRUE(started.ok()) << started.status();
    kept = *std::move(started);
  }

  Finished Tags(std::vector<std::string> words) const {
    words.insert(words.begin(), "tags");
    return RunFirn(words, {"--registry=" + registry()});
  }
  void Create(const std::string& text) const {
    const Finished made = Tags({"create", "order", "store=" + GetParam(), "text=" + text});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // Waits until the server knows the tag, without taking a number.
  bool StatusNames(const std::string& tag) const {
    return server_->Admin("/v1/status").body.find("\"" + tag + "\"") != std::string::npos;
  }
  bool IsServed() const {
    return Eventually(kPatience, [&] { return StatusNames("order"); });
  }

  // Returns the text of the next id. A statement that takes more than 2 s on a busy machine counts
  // as an unresponsive store: then the call is refused, takes no number, and is repeated.
  std::string NextText() const {
    std::string body;
    const bool given = Eventually(kPatience, [&] {
      const auto answer = server_->Get("/v1/ids/order?form=text");
      body = answer.body;
      return answer.status == 200;
    });
    EXPECT_TRUE(given) << body << server_->log();
    return body;
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }

  TempDir dir_;
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<SqlServer> table_;
  std::unique_ptr<RunningServer> server_;
};

TEST_P(DeletedTagTest, IsUnknownAndCanBeCreatedAgainInAnotherForm) {
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  const Finished deleted = Tags({"delete", "order"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  const auto unknown = [&] { return server_->Get("/v1/ids/order").status == 404; };
  EXPECT_TRUE(Eventually(kPatience, unknown)) << server_->log();
  EXPECT_FALSE(StatusNames("order")) << "a restore would bring the tag back";

  ASSERT_NO_FATAL_FAILURE(Create("B{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  EXPECT_THAT(NextText(), HasSubstr("\"B1\""));
  EXPECT_THAT(NextText(), HasSubstr("\"B2\""));

  const Finished used = Tags({"delete", "order"});
  EXPECT_EQ(used.exit_code, 4) << used.out;
  EXPECT_THAT(used.err, HasSubstr("retire it"));
  EXPECT_THAT(NextText(), HasSubstr("\"B3\""));
}

INSTANTIATE_TEST_SUITE_P(Stores, DeletedTagTest,
                         testing::Values("registry", "cache", "fast", "main", "elephant"),
                         [](const auto& store) { return store.param; });

// Another session holds the tag's row while a server requests the first range of it, and releases
// it after the tag was deleted.
class DeletedMeanwhileTest : public DeletedTagTest {
 protected:
  std::unique_ptr<SqlConnection> HoldRow() const {
    const DatabasePlace place{.address = {"127.0.0.1", static_cast<uint16_t>(table_->port())},
                              .database = SqlServer::kDatabase,
                              .credentials_file = table_->credentials_file()};
    std::unique_ptr<SqlConnection> holder;
    if (mysql()) holder = std::make_unique<MysqlConnection>(place);
    if (!mysql()) holder = std::make_unique<PostgresConnection>(place, SystemClock());
    EXPECT_EQ(table_->Run(InsertRowSql(TableForm::kFirn, "firn_tag", "order", 1, dialect())),
              Status());
    EXPECT_EQ(holder->Open(), Status());
    EXPECT_TRUE(holder->Execute("START TRANSACTION", {}).ok());
    EXPECT_TRUE(holder->Execute("SELECT max_id FROM firn_tag FOR UPDATE", {}).ok());
    return holder;
  }
  // Waits until the server is past every check for a deleted tag.
  bool ServerWaitsForTheRow() const {
    return Eventually(kPatience, [&] {
      const auto rows = table_->Query(
          mysql() ? "SELECT id FROM information_schema.processlist WHERE user = 'firn' AND "
                    "info LIKE 'UPDATE%'"
                  : "SELECT pid FROM pg_stat_activity WHERE usename = 'firn' AND "
                    "wait_event_type = 'Lock'");
      return rows.ok() && !rows->empty();
    });
  }
  bool mysql() const { return GetParam() == "main"; }
  SqlDialect dialect() const { return mysql() ? SqlDialect::kMysql : SqlDialect::kPostgres; }
};

TEST_P(DeletedMeanwhileTest, GivesNoNumberOfTheDeletedTag) {
  const std::unique_ptr<SqlConnection> holder = HoldRow();
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  auto first =
      std::async(std::launch::async, [&] { return server_->Get("/v1/ids/order?form=text"); });
  ASSERT_TRUE(ServerWaitsForTheRow()) << server_->log();
  const Finished deleted = Tags({"delete", "order"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  ASSERT_TRUE(holder->Execute("COMMIT", {}).ok());
  const auto answer = first.get();
  EXPECT_NE(answer.status, 200) << answer.body;

  ASSERT_NO_FATAL_FAILURE(Create("B{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  EXPECT_THAT(NextText(), HasSubstr("\"B"));
}

TEST_P(DeletedMeanwhileTest, TakesNoNumberForACallThatASlowStoreRefuses) {
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  table_->Stop();  // before the server's first connection
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("STORE_DOWN"));
  table_->Continue();
  EXPECT_THAT(NextText(), HasSubstr("\"A1\""));
}

// Exactly one of two happens: a number is issued and the tag stays, or the tag is deleted first.
TEST_P(DeletedTagTest, EitherTheFirstNumberIsIssuedOrTheTagIsDeleted) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
    ASSERT_TRUE(IsServed()) << server_->log();
    auto first = std::async(std::launch::async, [&] { return server_->Get("/v1/ids/order"); });
    const Finished deleted = Tags({"delete", "order"});
    const auto answer = first.get();
    EXPECT_FALSE(answer.status == 200 && deleted.exit_code == 0) << answer.body << deleted.out;
    if (deleted.exit_code != 0) return;
    const auto unknown = [&] { return server_->Get("/v1/ids/order").status == 404; };
    ASSERT_TRUE(Eventually(kPatience, unknown)) << server_->log();
  }
}

INSTANTIATE_TEST_SUITE_P(Stores, DeletedMeanwhileTest, testing::Values("main", "elephant"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace firn
