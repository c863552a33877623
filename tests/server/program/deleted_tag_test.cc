// A tag that never issued is taken away from under a running server, and made again.

#include <csignal>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/server/program/running_server.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/database/redis.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

constexpr Milliseconds kPatience{60'000};

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

  // Starts what the case's store needs; the lines of a file of stores.
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
           "\ncredentials_file = " + table_->credentials_file() + "\n";
  }
  template <typename Started, typename Kept>
  static void Take(Started started, Kept& kept) {
    ASSERT_TRUE(started.ok()) << started.status();
    kept = *std::move(started);
  }

  Finished Tags(std::vector<std::string> words) const {
    words.insert(words.begin(), {BuiltProgram("firn"), "tags"});
    words.push_back("--registry=" + registry());
    return RunToEnd(words);
  }
  void Create(const std::string& text) const {
    const Finished made = Tags({"create", "order", "store=" + GetParam(), "text=" + text});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  // Known to the server, which takes no number for that.
  bool StatusNames(const std::string& tag) const {
    return server_->Admin("/v1/status").body.find("\"" + tag + "\"") != std::string::npos;
  }
  bool IsServed() const {
    return Eventually(kPatience, [&] { return StatusNames("order"); });
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }

  TempDir dir_;
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<SqlServer> table_;
  std::unique_ptr<RunningServer> server_;
};

TEST_P(DeletedTagTest, IsUnknownAndIsMadeAgainInAnotherForm) {
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  const Finished deleted = Tags({"delete", "order"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  const auto unknown = [&] { return server_->Get("/v1/ids/order").status == 404; };
  EXPECT_TRUE(Eventually(kPatience, unknown)) << server_->log();
  EXPECT_FALSE(StatusNames("order")) << "a restore would bring it back";

  ASSERT_NO_FATAL_FAILURE(Create("B{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B1\""));
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B2\""));

  const Finished used = Tags({"delete", "order"});
  EXPECT_EQ(used.exit_code, 2) << used.out;
  EXPECT_THAT(used.err, HasSubstr("disable it"));
  EXPECT_THAT(server_->Get("/v1/ids/order?form=text").body, HasSubstr("\"B3\""));
}

INSTANTIATE_TEST_SUITE_P(Stores, DeletedTagTest,
                         testing::Values("registry", "cache", "fast", "main", "elephant"),
                         [](const auto& store) { return store.param; });

// A database that hangs while a server asks it for the first range, and answers after the tag has
// gone. MariaDB, which is one process: the others would answer on.
using DeletedMeanwhileTest = DeletedTagTest;

TEST_P(DeletedMeanwhileTest, GivesNoNumberOfTheDeletedTag) {
  ASSERT_NO_FATAL_FAILURE(Create("A{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  ASSERT_EQ(kill(table_->pid(), SIGSTOP), 0);
  auto first =
      std::async(std::launch::async, [&] { return server_->Get("/v1/ids/order?form=text"); });
  const Finished deleted = Tags({"delete", "order"});
  EXPECT_EQ(deleted.exit_code, 0) << deleted.err;
  ASSERT_EQ(kill(table_->pid(), SIGCONT), 0);
  EXPECT_NE(first.get().status, 200);

  ASSERT_NO_FATAL_FAILURE(Create("B{id}"));
  ASSERT_TRUE(IsServed()) << server_->log();
  const auto text = [&] { return server_->Get("/v1/ids/order?form=text"); };
  EXPECT_TRUE(Eventually(kPatience, [&] { return text().status == 200; })) << server_->log();
  EXPECT_THAT(text().body, HasSubstr("\"B"));
}

// Whoever is first has it: a number, and the tag stays; or the tag goes, and there is no number.
TEST_P(DeletedTagTest, AFirstNumberAndADeletionAreNeverBoth) {
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

INSTANTIATE_TEST_SUITE_P(Stores, DeletedMeanwhileTest, testing::Values("main"),
                         [](const auto& store) { return store.param; });

}  // namespace
}  // namespace firn
