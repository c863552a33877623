// The cost of a number from a database, of a range from each store, and of a number from a tiered
// hash. Real servers on loopback; every thread has a connection.

#include <cstdint>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/mysql/mysql_connection.h"
#include "server/store/redis/redis_store.h"
#include "server/store/redis/tiered_hash.h"
#include "server/store/table/table_store.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/database/redis.h"

namespace firn {
namespace {

constexpr int64_t kRange = 1000;

// Created before the threads, on the thread that ends last.
std::unique_ptr<MariaDb> mariadb;
std::unique_ptr<Redis> redis;

template <typename T>
T Must(Result<T> result) {
  if (!result.ok()) Die(result.status().ToString());
  return *std::move(result);
}
void Must(const Status& status) {
  if (!status.ok()) Die(status.ToString());
}

void StartMariaDb(const benchmark::State&) {
  if (mariadb == nullptr) mariadb = Must(MariaDb::Start());
  Must(mariadb->Run("DROP TABLE IF EXISTS firn_tag"));
  Must(mariadb->Run(CreateTableSql(TableForm::kFirn, "firn_tag")));
  Must(mariadb->Run(InsertRowSql(TableForm::kFirn, "firn_tag", "order", 1)));
}
void StopMariaDb(const benchmark::State&) { mariadb.reset(); }

void StartRedis(const benchmark::State&) {
  if (redis == nullptr) redis = Must(Redis::Start());
}
void StopRedis(const benchmark::State&) { redis.reset(); }

DatabasePlace MariaDbPlace() {
  return {.address = {"127.0.0.1", static_cast<uint16_t>(mariadb->port())},
          .database = MariaDb::kDatabase,
          .credentials_file = mariadb->credentials_file(),
          .time_limit = Milliseconds(30'000)};
}
RedisPlace RedisServerPlace() {
  return {.address = {"127.0.0.1", static_cast<uint16_t>(redis->port())},
          .time_limit = Milliseconds(30'000)};
}
const TagDefinition& Tag() {
  static const TagDefinition tag{.name = "order", .strategy = "segment"};
  return tag;
}

void MariaDbGivesEachNumber(benchmark::State& state) {
  MysqlConnection connection(MariaDbPlace());
  Must(connection.Open());
  for (auto _ : state) {
    Must(connection
             .Execute("UPDATE firn_tag SET max_id = LAST_INSERT_ID(max_id + 1) WHERE biz_tag = ?",
                      {std::string("order")})
             .status());
  }
  state.SetItemsProcessed(state.iterations());
}

void RedisGivesEachNumber(benchmark::State& state) {
  redisContext* const context = redisConnect("127.0.0.1", redis->port());
  if (context == nullptr || context->err != 0) Die("cannot connect to Redis");
  for (auto _ : state) freeReplyObject(redisCommand(context, "INCR counter"));
  redisFree(context);
  state.SetItemsProcessed(state.iterations());
}

void RangesFrom(RangeStore& store, benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Must(store.Advance(Tag(), 1, kRange)));
  state.SetItemsProcessed(state.iterations() * kRange);
}

void RangesOfMysqlStore(benchmark::State& state) {
  TableStore store({.name = "main"}, std::make_unique<MysqlConnection>(MariaDbPlace()),
                   Must(RangeTable::Make(SqlDialect::kMysql, TableForm::kFirn, "firn_tag")),
                   SystemClock(), SystemEntropy(), [](const std::string&) {});
  RangesFrom(store, state);
}

void RangesOfRedisStore(benchmark::State& state) {
  RedisStore store({.name = "cache", .place = RedisServerPlace()}, SystemClock(), SystemEntropy(),
                   [](const std::string&) {});
  RangesFrom(store, state);
}

// Takes each number with a separate call, like `buffer = none` with one caller at a time.
void TieredHashGivesEachNumber(benchmark::State& state) {
  TieredHash hash({.place = RedisServerPlace(), .prefix = "tier:"}, SystemClock(), SystemEntropy());
  const Range segment{1, TieredHash::kNumbersEnd};
  static_cast<void>(hash.Fill(Tag(), "a cluster", segment, 1));  // another thread's call has taken
                                                                 // the first number
  const TieredHash::Known known{.connection = Must(hash.Fence(Tag(), "a cluster", 1)).connection};
  for (auto _ : state) benchmark::DoNotOptimize(Must(hash.Take(Tag(), "a cluster", 1, known)));
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(MariaDbGivesEachNumber)->Setup(StartMariaDb)->Threads(1)->Threads(8)->UseRealTime();
BENCHMARK(RangesOfMysqlStore)->Setup(StartMariaDb)->Teardown(StopMariaDb)->UseRealTime();
BENCHMARK(RedisGivesEachNumber)->Setup(StartRedis)->Threads(1)->Threads(8)->UseRealTime();
BENCHMARK(RangesOfRedisStore)->Setup(StartRedis)->UseRealTime();
BENCHMARK(TieredHashGivesEachNumber)
    ->Setup(StartRedis)
    ->Teardown(StopRedis)
    ->Threads(1)
    ->Threads(8)
    ->UseRealTime();

}  // namespace
}  // namespace firn
