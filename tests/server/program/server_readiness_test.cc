// /readyz of a server that holds a machine id and cannot issue under it.

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class ServerReadinessTest : public testing::Test {
 protected:
  void Firn(const std::vector<std::string>& words) const {
    const Finished done = RunFirn(words, {"--registry=" + registry_});
    ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  }
  void Start(const std::string& registry, std::vector<std::string> flags) {
    flags.push_back("--registry=" + registry);
    server_ = std::make_unique<RunningServer>(dir_ / "state", std::move(flags));
  }

  // Checks that it is not ready, with the reason that a call gets, too.
  void IsNotReady(const std::string& reason) const {
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             const auto said = server_->Admin("/readyz");
                             return said.status == 503 &&
                                    said.body.find(reason) != std::string::npos;
                           }))
        << server_->Admin("/readyz").body << server_->log();
    const std::string status = server_->Admin("/v1/status").body;
    EXPECT_NE(status.find("\"state\": \"NOT_READY\""), std::string::npos) << status;
    EXPECT_NE(server_->Get("/genid").body.find(reason), std::string::npos);
  }

  TempDir dir_;
  const std::string registry_ = "dir://" + (dir_ / "registry");
  std::unique_ptr<RunningServer> server_;
};

TEST_F(ServerReadinessTest, WithAStrictClockPolicyWaitsForTheWallClockAfterARestore) {
  Firn({"init", "--brand-new", "--force", "--workers=2"});
  Firn({"tags", "create", "order", "strategy=segment", "start=1"});
  Firn({"restore"});
  Start(registry_, {"--clock_policy=strict", "--restore_probation_ms=0"});
  IsNotReady(" ms behind");
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return server_->Admin("/readyz?tag=order").status == 200;
  })) << "segment numbers need no clock";
  server_->process().Signal(SIGTERM);
  ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();

  Start(registry_, {"--clock_policy=run", "--restore_probation_ms=0"});
  EXPECT_TRUE(server_->BecomesReady()) << server_->log();
}

TEST_F(ServerReadinessTest, IsNotReadyAtTheEndOfItsLayout) {
  // 256 seconds that end soon.
  const int64_t epoch = SystemClock().Wall().ms() - 248'000;
  Start("static:" + std::to_string(512 + getpid() % 256),
        {"--static_first_start",
         "--layout=time:8s machine:10 sequence:12 epoch:" + std::to_string(epoch)});
  IsNotReady("has run out");
}

}  // namespace
}  // namespace firn
