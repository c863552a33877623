#include <iostream>

#include <gmock/gmock.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/redis/redis_store.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using testing::HasSubstr;

class RedisSentinelTest : public testing::Test {
 protected:
  void SetUp() override {
    for (std::unique_ptr<Redis>* const server : {&primary_, &replica_}) {
      auto started = Redis::Start();
      ASSERT_TRUE(started.ok()) << started.status();
      *server = *std::move(started);
    }
    ASSERT_EQ(replica_->Follow(*primary_), Status());
    sentinel_.emplace(*primary_);
  }

  std::unique_ptr<RedisStore> Open(const std::string& master) {
    const auto address = [](int port) {
      return Endpoint{"127.0.0.1", static_cast<uint16_t>(port)};
    };
    return std::make_unique<RedisStore>(
        RedisStore::Options{
            .name = "cache",
            // The first one is not running.
            .place = {.sentinels = {address(FreePort()), address(sentinel_->port())},
                      .master = master,
                      .time_limit = Milliseconds(2'000)},
            .backoff = {Milliseconds(10), Milliseconds(50)}},
        SystemClock(), SystemEntropy(), [](const std::string&) {});
  }

  // Takes a range with a ledger's check.
  bool Use(RedisStore& store) {
    const Result<Range> range = store.Advance(tag_, high_, 10);
    last_ = range.status();
    if (!range.ok() || range->begin < high_) return false;
    high_ = range->end;
    return true;
  }
  bool UseEventually(RedisStore& store) {
    return Eventually(kPatience, [&] { return Use(store); });
  }

  std::unique_ptr<Redis> primary_, replica_;
  std::optional<RedisSentinel> sentinel_;
  TagDefinition tag_{.name = "order", .strategy = "segment"};
  int64_t high_ = 1;
  Status last_;
};

TEST_F(RedisSentinelTest, FollowsAPromotionUnderLoad) {
  const auto store = Open(RedisSentinel::kMaster);
  ASSERT_TRUE(UseEventually(*store)) << last_;
  ASSERT_TRUE(Eventually(kPatience, [&] { return Use(*store) && sentinel_->KnowsAReplica(); }));
  const int64_t before = high_;
  primary_->Kill();
  const BootMs killed = TestNow();
  ASSERT_TRUE(UseEventually(*store)) << last_;
  std::cout << "outage of " << (TestNow() - killed).count() << " ms, promotion included\n";
  EXPECT_EQ(replica_->Info("role"), "master");
  EXPECT_GE(high_, before + 10);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(UseEventually(*store)) << last_;

  // The old primary returns as a master, briefly or for longer: no store uses it.
  ASSERT_EQ(primary_->Restart(), Status());
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(UseEventually(*store)) << last_;
}

TEST_F(RedisSentinelTest, NamesTheSentinelsThatKnowNoMaster) {
  const auto store = Open("elsewhere");
  ASSERT_TRUE(Eventually(kPatience, [&] {
    Use(*store);
    return last_.message().find("it knows no master 'elsewhere'") != std::string::npos;
  })) << last_;
  EXPECT_THAT(last_.message(), HasSubstr("Connection refused"));
}

}  // namespace
}  // namespace firn
