#include <memory>
#include <string>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/redis/redis_store.h"
#include "tests/contract/range_store_contract.h"
#include "tests/support/database/redis.h"

namespace firn {
namespace {

// A world with a separate server.
class RedisWorld final : public RangeStoreWorld {
 public:
  RedisWorld() {
    auto started = Redis::Start({.password = "a secret"});
    EXPECT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }

  std::unique_ptr<RangeStore> Open() override {
    RedisStore::Options options{
        .name = "cache",
        .place = {.address = {"127.0.0.1", static_cast<uint16_t>(server_->port())},
                  .database = 3,
                  .credentials_file = server_->credentials_file(),
                  .time_limit = Milliseconds(60'000)}};
    return std::make_unique<RedisStore>(std::move(options), SystemClock(), SystemEntropy(),
                                        [](const std::string&) {});
  }

  bool marks_cluster() const override { return true; }
  int64_t end() const override { return RedisStore::kNumbersEnd; }

 private:
  std::unique_ptr<Redis> server_;
};

INSTANTIATE_TEST_SUITE_P(Redis, RangeStoreContract,
                         testing::Values(RangeWorldMaker{
                             "hash", [] { return std::make_unique<RedisWorld>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
