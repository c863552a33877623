#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/mysql/mysql_store.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/mysql_tables.h"

namespace firn {

// A store on a real server, and somebody who edits rows behind its back.
class MysqlStoreFixture : public testing::Test {
 protected:
  static constexpr const char* kTable = "ranges";
  static constexpr Milliseconds kPatience{60'000};

  static void SetUpTestSuite() {
    auto started = MariaDb::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    ASSERT_NE(server_, nullptr);
    CreateTable(MysqlForm::kFirn);
  }

  // A fresh table of the form, and a store on it.
  void CreateTable(MysqlForm form) {
    form_ = form;
    ASSERT_EQ(server_->Run(std::string("DROP TABLE IF EXISTS ") + kTable), Status());
    ASSERT_EQ(server_->Run(CreateTableSql(form, kTable)), Status());
    store_ = Open(PlaceOf(*server_));
  }

  static MysqlPlace PlaceOf(const MariaDb& server) {
    return {.address = {"127.0.0.1", static_cast<uint16_t>(server.port())},
            .database = MariaDb::kDatabase,
            .credentials_file = server.credentials_file(),
            .time_limit = Milliseconds(30'000)};
  }

  std::unique_ptr<MysqlStore> Open(MysqlPlace place) {
    MysqlStore::Options options{
        .name = "main", .place = std::move(place), .backoff = {Milliseconds(10), Milliseconds(50)}};
    return std::make_unique<MysqlStore>(
        std::move(options), *MysqlTable::Make(form_, kTable), SystemClock(), SystemEntropy(),
        [this](const std::string& sentence) { alarms_.push_back(sentence); });
  }

  void Edit(const std::string& change) {
    ASSERT_EQ(server_->Run(std::string("UPDATE ") + kTable + " SET " + change), Status());
  }
  void InsertRow(int64_t begin) {
    ASSERT_EQ(server_->Run(InsertRowSql(form_, kTable, tag_.name, begin)), Status());
  }
  std::string Row() {
    const auto rows = server_->Query(std::string("SELECT max_id, step FROM ") + kTable);
    if (!rows.ok()) return rows.status().ToString();
    return rows->empty() ? "none" : rows->at(0).at(0) + " " + rows->at(0).at(1);
  }

  // What a ledger would let through: the range when it lies above everything before it.
  std::optional<Range> Use(MysqlStore& store, int64_t size = 10) {
    const Result<Range> range = store.Advance(tag_, high_, size);
    if (!range.ok() || range->begin < high_) return std::nullopt;
    high_ = range->end;
    return *range;
  }

  static inline std::unique_ptr<MariaDb> server_;
  MysqlForm form_ = MysqlForm::kFirn;
  TagDefinition tag_{.name = "order", .strategy = "segment"};
  std::vector<std::string> alarms_;
  std::unique_ptr<MysqlStore> store_;
  int64_t high_ = 1;
};

}  // namespace firn
