// Waste of segment tags, as metrics show it.

#include <fstream>

#include <gtest/gtest.h>

#include "tests/server/program/running_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class SegmentWasteTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Redis::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    redis_ = *std::move(started);
    std::ofstream(stores_file()) << "[cache]\nkind = redis\naddress = " << redis_->address()
                                 << "\n[fast]\nkind = tiered\nfront = cache\n";
  }

  RunningServer Server() const {
    return RunningServer(
        dir_ / "state",
        {"--registry=" + registry(), "--stores_file=" + stores_file(), "--issue_wait_ms=1000"});
  }
  // Creates a tag whose numbers all come from Redis, in segments of 20.
  void CreateTag() const {
    const Finished made =
        RunToEnd({BuiltProgram("firn"), "tags", "create", "order", "strategy=segment", "store=fast",
                  "buffer=none", "step=20", "--registry=" + registry()});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static bool Gives(const RunningServer& server) {
    return Eventually(kPatience, [&] { return server.Get("/v1/ids/order").status == 200; });
  }
  // Returns the value in /metrics; -1 if it is missing.
  static int64_t Wasted(const RunningServer& server) {
    const std::string line = "\nfirn_segment_wasted_total{tag=\"order\"} ";
    const std::string page = server.Admin("/metrics").body;
    const size_t at = page.find(line);
    return at == std::string::npos ? -1 : std::stoll(page.substr(at + line.size()));
  }

  std::string registry() const { return "dir://" + (dir_ / "registry"); }
  std::string stores_file() const { return dir_ / "stores.ini"; }

  TempDir dir_;
  std::unique_ptr<Redis> redis_;
};

TEST_F(SegmentWasteTest, MetricsCountNumbersThatRedisMustNotGiveAnyMore) {
  RunningServer server = Server();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  CreateTag();
  ASSERT_TRUE(Gives(server)) << server.log();
  EXPECT_EQ(Wasted(server), 0);
  // The effect of a failover: the segment is on another server than the one that was given it.
  ASSERT_TRUE(redis_->Run({"HSET", "firn:order:tiered", "ids", "another"}).ok());
  ASSERT_TRUE(Gives(server)) << server.log();
  EXPECT_TRUE(Eventually(kPatience, [&] { return Wasted(server) > 0; })) << server.log();
}

}  // namespace
}  // namespace firn
