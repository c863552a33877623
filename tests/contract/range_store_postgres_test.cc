#include "server/store/postgres/postgres_connection.h"
#include "tests/contract/table_world.h"
#include "tests/support/database/postgres.h"

namespace firn {
namespace {

std::unique_ptr<SqlConnection> Connect(DatabasePlace place) {
  return std::make_unique<PostgresConnection>(std::move(place), SystemClock());
}

using PostgresWorld = TableWorld<Postgres, SqlDialect::kPostgres>;

INSTANTIATE_TEST_SUITE_P(Postgres, RangeStoreContract, PostgresWorld::Makers(Connect),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
