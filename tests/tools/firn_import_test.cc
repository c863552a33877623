#include <fstream>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

// Imports from a real database into a directory registry.
class FirnImportTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = MariaDb::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    Run("CREATE DATABASE other");
    Run("GRANT SELECT ON other.* TO firn@'127.0.0.1'");
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    ASSERT_NE(server_, nullptr);
    for (const char* database : {"ids", "other"}) {
      const std::string prefix = std::string(database) + ".";
      Run("DROP TABLE IF EXISTS " + prefix + "leaf_alloc, " + prefix + "tiny_id_info");
      Run(CreateTableSql(TableForm::kLeaf, prefix + "leaf_alloc"));
      Run(CreateTableSql(TableForm::kTinyid, prefix + "tiny_id_info"));
    }
    EXPECT_EQ(Firn({"init", "--brand-new", "--force", "--workers=4"}).exit_code, 0);
  }

  static void Run(const std::string& sql) { ASSERT_EQ(server_->Run(sql), Status()) << sql; }

  Finished Firn(const std::vector<std::string>& words) {
    return RunFirn(words, {"--registry=dir://" + (folder_ / "registry")});
  }
  Finished Import(std::vector<std::string> arguments,
                  const std::vector<std::string>& databases = {"ids"}) {
    arguments.insert(arguments.begin(), {"tags", "import"});
    for (const std::string& database : databases) {
      arguments.push_back(server_->address() + "/" + database);
    }
    arguments.push_back("--credentials_file=" + server_->credentials_file());
    return Firn(std::move(arguments));
  }
  std::string Show(const std::string& tag, const std::string& field) {
    const Finished shown = Firn({"tags", "show", tag, "--json"});
    const Json json = JsonOf(shown.out);
    return json.is_array() ? json.at(0).at(field).text() : shown.err;
  }

  static inline std::unique_ptr<MariaDb> server_;
  TempDir folder_;
};

TEST_F(FirnImportTest, ImportsLeafTagsAfterADryRun) {
  Run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 2001, 1000),"
      " ('M\xC3\xBCller', 1, 20)");
  const Finished dry = Import({"--dry_run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_NE(dry.out.find("high: 0 -> 2001"), std::string::npos) << dry.out;
  EXPECT_EQ(Firn({"tags", "show", "order"}).exit_code, 4);

  const Finished done = Import({"--store=main"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(Show("order", "high"), "2001");
  EXPECT_EQ(Show("order", "store"), "main");
  EXPECT_EQ(Show("order", "step"), "1000");
  EXPECT_EQ(Show("M\xC3\xBCller", "high"), "1");

  Run("UPDATE leaf_alloc SET max_id = 9001");
  EXPECT_EQ(Import({}).exit_code, 0);
  EXPECT_EQ(Show("order", "high"), "9001");
  EXPECT_EQ(Show("order", "store"), "main");  // existing tags keep their definitions
  Run("UPDATE leaf_alloc SET max_id = 5");
  EXPECT_EQ(Import({}).exit_code, 0);
  EXPECT_EQ(Show("order", "high"), "9001");
}

TEST_F(FirnImportTest, RefusesAStoreThatNoServerHasBeforeTheFirstWrite) {
  Run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 2001, 1000)");
  RunningServer server(folder_ / "state", {"--registry=dir://" + (folder_ / "registry")});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  Finished refused;
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {  // after the server has registered
    return (refused = Import({"--store=main", "--dry_run"})).exit_code == 2;
  })) << refused.out;
  EXPECT_NE(refused.err.find("store 'main' is not configured"), std::string::npos) << refused.err;
  EXPECT_EQ(Import({"--store=main", "--dry_run", "--force"}).exit_code, 0);
  EXPECT_EQ(Import({"--store=main"}).exit_code, 2);
  EXPECT_EQ(Firn({"tags", "show", "order"}).exit_code, 4);
  EXPECT_EQ(Import({}).exit_code, 0);
  EXPECT_EQ(Show("order", "store"), "registry");
  EXPECT_EQ(Firn({"tags", "create", "kept", "plugins=history"}).exit_code, 2)
      << "the server runs without --history_file";
  EXPECT_EQ(Firn({"tags", "create", "slow", "plugins=limit", "limit.per_second=9"}).exit_code, 0);
}

TEST_F(FirnImportTest, ContinuesATinyidTagAboveBothDatabases) {
  Run("INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder)"
      " VALUES ('order', 3000, 1000, 2, 0)");
  Run("INSERT INTO other.tiny_id_info (biz_type, max_id, step, delta, remainder)"
      " VALUES ('order', 7000, 1000, 2, 1)");
  const Finished forgotten = Import({"--from=tinyid"});
  EXPECT_EQ(forgotten.exit_code, 2);
  EXPECT_NE(forgotten.err.find("delta is 2"), std::string::npos) << forgotten.err;
  EXPECT_EQ(Import({"--from=tinyid"}, {"ids", "other"}).exit_code, 0);
  EXPECT_EQ(Show("order", "high"), "7001");
}

// Cases of a server that serves the imported tags: its first number, and the row that it writes.
struct Serving {
  const char* form;
  const char* table;
  const char* insert;
  int64_t first;
  const char* row;  // reads the row's max
};

TEST_F(FirnImportTest, ServerContinuesAboveImportedTagsAndAdvancesTheRow) {
  const Serving kServings[] = {
      {"leaf", "leaf_alloc",
       "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf', 2001, 1000)", 2001,
       "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'leaf'"},
      {"tinyid", "tiny_id_info",
       "INSERT INTO tiny_id_info (biz_type, max_id, step, delta, remainder)"
       " VALUES ('tinyid', 3000, 1000, 1, 0)",
       3001, "SELECT max_id FROM tiny_id_info WHERE biz_type = 'tinyid'"}};
  std::ofstream stores(folder_ / "stores.ini");
  for (const Serving& one : kServings) {
    Run(one.insert);
    const Finished imported =
        Import({std::string("--from=") + one.form, std::string("--store=") + one.form});
    ASSERT_EQ(imported.exit_code, 0) << imported.err;
    stores << "[" << one.form << "]\nkind = mysql\naddress = " << server_->address()
           << "\ndatabase = ids\ntable = " << one.table << "\nform = " << one.form
           << "\ncredentials_file = " << server_->credentials_file() << "\n";
  }
  stores.close();
  RunningServer server(folder_ / "state",
                       {"--registry=dir://" + (folder_ / "registry"),
                        "--stores_file=" + (folder_ / "stores.ini"), "--issue_wait_ms=10000"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  for (const Serving& one : kServings) {
    RunningServer::Answer answer;
    EXPECT_TRUE(Eventually(
        Milliseconds(60'000),
        [&] { return (answer = server.Get(std::string("/v1/ids/") + one.form)).status == 200; }))
        << answer.body << server.log();
    const Json json = JsonOf(answer.body);
    EXPECT_EQ(json.at("ids").at(0), std::to_string(one.first)) << one.form;
    const auto rows = server_->Query(one.row);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_GE(std::stoll(rows->at(0).at(0)), one.first + 999) << one.form;
  }
}

TEST_F(FirnImportTest, RefusesInvalidRowsUnlessSkipped) {
  Run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('bad', -5, 1000), ('good', 7, 10)");
  EXPECT_EQ(Import({}).exit_code, 2);
  EXPECT_EQ(Firn({"tags", "show", "good"}).exit_code, 4);
  const Finished rest = Import({"--skip_faulty"});
  EXPECT_EQ(rest.exit_code, 1) << rest.err;
  EXPECT_NE(rest.out.find("tag 'bad'"), std::string::npos) << rest.out;
  EXPECT_EQ(Show("good", "high"), "7");
}

TEST_F(FirnImportTest, RefusesInvalidCalls) {
  EXPECT_EQ(Import({}, {}).exit_code, 2);
  EXPECT_EQ(Import({"--from=oracle"}).exit_code, 2);
  EXPECT_EQ(Import({"--table=a;b"}).exit_code, 2);
  EXPECT_EQ(Import({"--table=missing"}).exit_code, 4);
  EXPECT_EQ(Import({"--store=Main!"}).exit_code, 2);
  EXPECT_EQ(Firn({"tags", "import", server_->address() + "/ids"}).exit_code, 2);
  EXPECT_EQ(Import({}, {"mysql"}).exit_code, 4);  // no permission to read it
}

}  // namespace
}  // namespace firn
