// A real server with Redis whose tag an operator edits into one that it cannot serve.

#include <fstream>

#include <gtest/gtest.h>

#include "tests/server/program/running_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class EditedTagTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Redis::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    redis_ = *std::move(started);
    std::ofstream(dir_ / "stores.ini")
        << "[cache]\nkind = redis\naddress = " << redis_->address() << "\n";
  }
  Finished Firn(std::vector<std::string> call) const {
    call.insert(call.begin(), BuiltProgram("firn"));
    call.push_back("--registry=" + registry());
    return RunToEnd(call);
  }
  std::string registry() const { return "dir://" + (dir_ / "registry"); }

  TempDir dir_;
  std::unique_ptr<Redis> redis_;
};

TEST_F(EditedTagTest, ServesTheEarlierDefinitionUntilTheEditIsCorrected) {
  RunningServer server(dir_ / "state",
                       {"--registry=" + registry(), "--stores_file=" + (dir_ / "stores.ini")});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  ASSERT_EQ(Firn({"tags", "create", "order", "store=cache"}).exit_code, 0);
  const auto status_of_order = [&] { return server.Get("/v1/ids/order").status; };
  ASSERT_TRUE(Eventually(kPatience, [&] { return status_of_order() == 200; })) << server.log();
  EXPECT_TRUE(Eventually(kPatience, [&] {  // once the server has announced itself
    return Firn({"tags", "set", "order", "buffer=none", "--dry_run"}).exit_code == 2;
  }));
  ASSERT_EQ(Firn({"tags", "set", "order", "buffer=none", "--force"}).exit_code, 0);
  const std::string series = "firn_tag_outdated{tag=\"order\"}";
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.Metric(series) == 1; })) << server.log();
  EXPECT_EQ(status_of_order(), 200);
  EXPECT_EQ(server.Admin("/readyz?tag=order").status, 200);
  const std::string reason = "store 'cache' does not permit buffer = none";
  EXPECT_NE(server.Admin("/v1/status").body.find("\"outdated\": \"" + reason), std::string::npos);
  const std::string finding = "serves an earlier definition of tag 'order': " + reason;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return Firn({"audit"}).out.find(finding) != std::string::npos;
  })) << Firn({"audit"}).out;

  ASSERT_EQ(Firn({"tags", "set", "order", "buffer=double"}).exit_code, 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.Metric(series) == -1; })) << server.log();
  EXPECT_EQ(status_of_order(), 200);
}

}  // namespace
}  // namespace firn
