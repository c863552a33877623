#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/table/table_store.h"
#include "tests/contract/range_store_contract.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/database/sql_server.h"

namespace firn {

// One server for the whole program; every world has a table of its form. The test program of each
// database defines how to start the server, and how to connect to it.
template <typename Database, SqlDialect dialect>
class TableWorld final : public RangeStoreWorld {
 public:
  using Connect = std::unique_ptr<SqlConnection> (*)(DatabasePlace place);

  TableWorld(TableForm form, Connect connect, bool stands_in)
      : form_(form), connect_(connect), stands_in_(stands_in) {
    EXPECT_NE(Server(), nullptr);
    EXPECT_EQ(Server()->Run(std::string("DROP TABLE IF EXISTS ") + kTable), Status());
    EXPECT_EQ(Server()->Run(CreateTableSql(form, kTable, dialect)), Status());
  }

  std::unique_ptr<RangeStore> Open() override {
    DatabasePlace place{.address = {"127.0.0.1", static_cast<uint16_t>(Server()->port())},
                        .database = SqlServer::kDatabase,
                        .credentials_file = Server()->credentials_file(),
                        .time_limit = Milliseconds(60'000)};
    auto store = std::make_unique<TableStore>(
        TableStore::Options{.name = "main"}, connect_(std::move(place)),
        *RangeTable::Make(dialect, form_, kTable), SystemClock(), SystemEntropy(),
        [](const std::string&) {});
    store->Listen({.cluster = "a cluster"});
    return store;
  }

  bool stands_in() const override { return stands_in_; }
  bool marks_cluster() const override { return form_ == TableForm::kFirn; }
  bool permits_stand_in() const override { return form_ == TableForm::kFirn; }

  void Prepare(const TagDefinition& tag) override {
    if (form_ == TableForm::kFirn) return;
    EXPECT_EQ(Server()->Run(InsertRowSql(form_, kTable, tag.name, tag.NextBegin(), dialect)),
              Status());
  }

  // Tables of other systems compare names by their collation, not byte by byte.
  bool Permits(const std::string& name) const override {
    return form_ == TableForm::kFirn ||
           (name.size() < 64 && name != "Order" && name.front() != '\xF0');
  }

  static auto Makers(Connect connect) {
    const auto maker = [connect](const char* name, TableForm form, bool stands_in = false) {
      return RangeWorldMaker{name, [connect, form, stands_in] {
                               return std::make_unique<TableWorld>(form, connect, stands_in);
                             }};
    };
    return testing::Values(maker("firn", TableForm::kFirn),
                           maker("firn_with_a_ledger_that_stands_in", TableForm::kFirn, true),
                           maker("leaf", TableForm::kLeaf), maker("tinyid", TableForm::kTinyid));
  }

 private:
  static constexpr const char* kTable = "ranges";

  static SqlServer* Server() {
    static const auto server = Database::Start();
    return server.ok() ? server.value().get() : nullptr;
  }

  const TableForm form_;
  const Connect connect_;
  const bool stands_in_;
};

}  // namespace firn
