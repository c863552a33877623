#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/mysql/mysql_connection.h"
#include "server/store/postgres/postgres_connection.h"
#include "server/store/table/table_store.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/process.h"

namespace firn {

// A connection that counts how often it was made.
class CountedConnection final : public SqlConnection {
 public:
  CountedConnection(std::unique_ptr<SqlConnection> real, int& opens)
      : real_(std::move(real)), opens_(opens) {}

  bool is_open() const override { return real_->is_open(); }
  Status Open() override {
    ++opens_;
    return real_->Open();
  }
  void Close() override { real_->Close(); }
  bool away() const override { return real_->away(); }
  Result<Answer> Execute(const std::string& sql, const std::vector<Parameter>& of) override {
    return real_->Execute(sql, of);
  }

 private:
  const std::unique_ptr<SqlConnection> real_;
  int& opens_;
};

// A store on a real server of either database, and a connection that edits its rows.
class TableStoreFixture : public testing::TestWithParam<SqlDialect> {
 protected:
  static constexpr const char* kTable = "ranges";

  // Returns null, and the test has failed, if it does not serve.
  static std::unique_ptr<SqlServer> StartServer(SqlDialect dialect) {
    std::unique_ptr<SqlServer> server;
    const auto keep = [&](auto started) {
      EXPECT_TRUE(started.ok()) << started.status();
      if (started.ok()) server = *std::move(started);
    };
    dialect == SqlDialect::kMysql ? keep(MariaDb::Start()) : keep(Postgres::Start());
    return server;
  }
  // One server of each database for a suite.
  static SqlServer* ServerOf(SqlDialect dialect) {
    std::unique_ptr<SqlServer>& server = servers_[dialect];
    if (server == nullptr) server = StartServer(dialect);
    return server.get();
  }
  static void TearDownTestSuite() { servers_.clear(); }

  void SetUp() override {
    server_ = ServerOf(GetParam());
    ASSERT_NE(server_, nullptr);
    CreateTable(TableForm::kFirn);
  }

  bool mysql() const { return GetParam() == SqlDialect::kMysql; }

  // Creates a new table of the form, and a store on it.
  void CreateTable(TableForm form) {
    form_ = form;
    ASSERT_EQ(server_->Run(std::string("DROP TABLE IF EXISTS ") + kTable), Status());
    ASSERT_EQ(server_->Run(CreateTableSql(form, kTable, GetParam())), Status());
    store_ = Open(PlaceOf(*server_));
  }

  static DatabasePlace PlaceOf(const SqlServer& server) {
    return {.address = {"127.0.0.1", static_cast<uint16_t>(server.port())},
            .database = SqlServer::kDatabase,
            .credentials_file = server.credentials_file(),
            .time_limit = Milliseconds(30'000)};
  }

  std::unique_ptr<SqlConnection> Connection(DatabasePlace place) const {
    if (mysql()) return std::make_unique<MysqlConnection>(std::move(place));
    return std::make_unique<PostgresConnection>(std::move(place), SystemClock());
  }

  std::unique_ptr<TableStore> Open(DatabasePlace place, const Clock& clock = SystemClock()) {
    return Open(Connection(std::move(place)), clock);
  }
  std::unique_ptr<TableStore> Open(std::unique_ptr<SqlConnection> connection,
                                   const Clock& clock = SystemClock()) {
    return std::make_unique<TableStore>(
        TableStore::Options{.name = "main", .backoff = {Milliseconds(10), Milliseconds(50)}},
        std::make_unique<CountedConnection>(std::move(connection), opens_),
        *RangeTable::Make(GetParam(), form_, kTable), clock, SystemEntropy(),
        [this](const std::string& sentence) { alarms_.push_back(sentence); });
  }

  void Edit(const std::string& change) {
    ASSERT_EQ(server_->Run(std::string("UPDATE ") + kTable + " SET " + change), Status());
  }
  void InsertRow(int64_t begin) {
    ASSERT_EQ(server_->Run(InsertRowSql(form_, kTable, tag_.name, begin, GetParam())), Status());
  }
  std::string Row() {
    const auto rows = server_->Query(std::string("SELECT max_id, step FROM ") + kTable);
    if (!rows.ok()) return rows.status().ToString();
    return rows->empty() ? "none" : rows->at(0).at(0) + " " + rows->at(0).at(1);
  }

  // A ledger's check: returns the range if it lies above everything before it.
  std::optional<Range> Use(TableStore& store, int64_t size = 10) {
    const Result<Range> range = store.Advance(tag_, high_, size);
    if (!range.ok() || range->begin < high_) return std::nullopt;
    high_ = range->end;
    return *range;
  }

  static inline std::map<SqlDialect, std::unique_ptr<SqlServer>> servers_;
  SqlServer* server_ = nullptr;
  TableForm form_ = TableForm::kFirn;
  TagDefinition tag_{.name = "order", .strategy = "segment"};
  std::vector<std::string> alarms_;
  std::unique_ptr<TableStore> store_;
  int64_t high_ = 1;
  int opens_ = 0;  // attempts of all stores to connect
};

inline std::string NameOfDatabase(const testing::TestParamInfo<SqlDialect>& tested) {
  return tested.param == SqlDialect::kMysql ? "mariadb" : "postgres";
}

}  // namespace firn
