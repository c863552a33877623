// A real server with a segment tag whose numbers come from Redis.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/program/running_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class RedisTagTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Redis::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    redis_ = *std::move(started);
    const std::string stores = dir_ / "stores.ini";
    std::ofstream(stores) << "[cache]\nkind = redis\naddress = " << redis_->address()
                          << "\n[fast]\nkind = tiered\nfront = cache\n";
    server_ = std::make_unique<RunningServer>(
        dir_ / "state",
        std::vector<std::string>{"--registry=" + registry_, "--stores_file=" + stores,
                                 "--issue_wait_ms=1000"});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry_});
  }
  int StatusOfOrder() const { return server_->Get("/v1/ids/order").status; }
  bool GivesOrder() const {
    return Eventually(kPatience, [&] { return StatusOfOrder() == 200; });
  }
  bool MetricBecomes(const std::string& series, int64_t value) const {
    return Eventually(kPatience, [&] { return server_->Metric(series) == value; });
  }

  TempDir dir_;
  const std::string registry_ = "dir://" + (dir_ / "registry");
  std::unique_ptr<Redis> redis_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(RedisTagTest, ServesTheEarlierDefinitionUntilAnEditIsCorrected) {
  ASSERT_EQ(Firn({"tags", "create", "order", "store=cache"}).exit_code, 0);
  ASSERT_TRUE(GivesOrder()) << server_->log();
  EXPECT_TRUE(Eventually(kPatience, [&] {  // once the server has announced itself
    return Firn({"tags", "set", "order", "buffer=none", "--dry_run"}).exit_code == 2;
  }));
  ASSERT_EQ(Firn({"tags", "set", "order", "buffer=none", "--force"}).exit_code, 0);
  const std::string series = "firn_tag_outdated{tag=\"order\"}";
  EXPECT_TRUE(MetricBecomes(series, 1)) << server_->log();
  EXPECT_EQ(StatusOfOrder(), 200);
  EXPECT_EQ(server_->Admin("/readyz?tag=order").status, 200);
  const std::string reason = "store 'cache' does not permit buffer = none";
  EXPECT_NE(server_->Admin("/v1/status").body.find("\"outdated\": \"" + reason), std::string::npos);
  const std::string finding = "serves an earlier definition of tag 'order': " + reason;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Firn({"audit"}).out.find(finding) != std::string::npos;
  })) << Firn({"audit"}).out;

  ASSERT_EQ(Firn({"tags", "set", "order", "buffer=double"}).exit_code, 0);
  EXPECT_TRUE(MetricBecomes(series, -1)) << server_->log();
  EXPECT_EQ(StatusOfOrder(), 200);
}

TEST_F(RedisTagTest, MetricsCountNumbersThatRedisMustNoLongerGive) {
  // All its numbers come from Redis, in segments of 20.
  const Finished made =
      Firn({"tags", "create", "order", "strategy=segment", "store=fast", "buffer=none", "step=20"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_TRUE(GivesOrder()) << server_->log();
  const std::string series = "firn_segment_wasted_total{tag=\"order\"}";
  EXPECT_EQ(server_->Metric(series), 0);
  // The effect of a failover: the segment is on a server that did not receive it.
  ASSERT_TRUE(redis_->Run({"HSET", "firn:order:tiered", "ids", "another"}).ok());
  ASSERT_TRUE(GivesOrder()) << server_->log();
  EXPECT_TRUE(Eventually(kPatience, [&] { return server_->Metric(series) > 0; })) << server_->log();
}

}  // namespace
}  // namespace firn
