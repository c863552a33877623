#include <algorithm>
#include <memory>
#include <string>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/mysql/mysql_store.h"
#include "tests/contract/range_store_contract.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/mysql_tables.h"

namespace firn {
namespace {

constexpr const char* kTable = "ranges";

// One server for the whole program; every world has its own table of one form.
MariaDb* Server() {
  static const auto server = MariaDb::Start();
  return server.ok() ? const_cast<MariaDb*>(server.value().get()) : nullptr;
}

template <MysqlForm form>
class MysqlWorld final : public RangeStoreWorld {
 public:
  MysqlWorld() {
    EXPECT_NE(Server(), nullptr);
    EXPECT_EQ(Server()->Run(std::string("DROP TABLE IF EXISTS ") + kTable), Status());
    EXPECT_EQ(Server()->Run(CreateTableSql(form, kTable)), Status());
  }

  std::unique_ptr<RangeStore> Open() override {
    MysqlStore::Options options{
        .name = "main",
        .place = {.address = {"127.0.0.1", static_cast<uint16_t>(Server()->port())},
                  .database = MariaDb::kDatabase,
                  .credentials_file = Server()->credentials_file(),
                  .time_limit = Milliseconds(60'000)}};
    return std::make_unique<MysqlStore>(std::move(options), *MysqlTable::Make(form, kTable),
                                        SystemClock(), SystemEntropy(), [](const std::string&) {});
  }

  void Prepare(const TagDefinition& tag) override {
    if (form == MysqlForm::kFirn) return;
    EXPECT_EQ(Server()->Run(InsertRowSql(form, kTable, tag.name, tag.NextBegin())), Status());
  }

  // Others' tables compare names as their makers have said, not byte by byte.
  bool Permits(const std::string& name) const override {
    return form == MysqlForm::kFirn ||
           (name.size() < 64 && name != "Order" && name.front() != '\xF0');
  }
};

template <MysqlForm form>
RangeWorldMaker Maker(const char* name) {
  return {name, [] { return std::make_unique<MysqlWorld<form>>(); }};
}

INSTANTIATE_TEST_SUITE_P(Mysql, RangeStoreContract,
                         testing::Values(Maker<MysqlForm::kFirn>("firn"),
                                         Maker<MysqlForm::kLeaf>("leaf"),
                                         Maker<MysqlForm::kTinyid>("tinyid")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
