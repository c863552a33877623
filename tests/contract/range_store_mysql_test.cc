#include "server/store/mysql/mysql_connection.h"
#include "tests/contract/table_world.h"
#include "tests/support/database/mariadb.h"

namespace firn {
namespace {

std::unique_ptr<SqlConnection> Connect(DatabasePlace place) {
  return std::make_unique<MysqlConnection>(std::move(place));
}

using MysqlWorld = TableWorld<MariaDb, SqlDialect::kMysql>;

INSTANTIATE_TEST_SUITE_P(Mysql, RangeStoreContract, MysqlWorld::Makers(Connect),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
