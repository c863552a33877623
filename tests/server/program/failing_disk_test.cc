// A disk that accepts writes but cannot make them durable: only fsync(2) fails, under the real
// program.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class FailingDiskTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags) {
    server_ = std::make_unique<RunningServer>(
        state_, std::move(flags),
        std::vector<std::string>{"env", "LD_PRELOAD=" FIRN_FAILING_SYNC, "FAILING_SYNC=" + fault_,
                                 "ASAN_OPTIONS=quarantine_size_mb=4:verify_asan_link_order=0"});
  }
  // With a machine id assigned by the operator, so that the grant is on the disk.
  void StartByHand() {
    const int machine = 512 + getpid() % 256;
    Start({"--registry=static:" + std::to_string(machine), "--static_first_start"});
  }
  void StartInACluster() {
    const Finished made = Firn({"init", "--brand-new", "--force", "--workers=2"});
    ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
    Start({"--registry=" + registry_});
  }
  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry_});
  }

  void BreakDisk() { std::ofstream(fault_) << state_; }
  void RepairDisk() { std::filesystem::remove(fault_); }

  bool Becomes(int readiness) const {
    return Eventually(kPatience, [&] { return server_->Admin("/readyz").status == readiness; });
  }
  int64_t Id() const {
    const auto answer = server_->Get("/genid");
    EXPECT_EQ(answer.status, 200) << answer.body << server_->log();
    return answer.status == 200 ? std::stoll(answer.body) : 0;
  }
  bool Logs(const std::string& words) const {
    return Eventually(kPatience, [&] { return server_->log().find(words) != std::string::npos; });
  }
  bool Keeps(const std::string& ending) const {
    for (const auto& entry : std::filesystem::directory_iterator(state_)) {
      if (entry.path().string().ends_with(ending)) return true;
    }
    return false;
  }
  void EndsInOrder() {
    server_->process().Signal(SIGTERM);
    EXPECT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  }

  TempDir dir_;
  const std::string state_ = dir_ / "state", fault_ = dir_ / "fault";
  const std::string registry_ = "dir://" + (dir_ / "registry");
  std::unique_ptr<RunningServer> server_;
};

TEST_F(FailingDiskTest, AGrantThatCannotBeSyncedPermitsNothingUntilItCan) {
  StartByHand();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  const int64_t before = Id();
  BreakDisk();
  ASSERT_TRUE(Becomes(503)) << server_->log();
  const std::string why = server_->Admin("/readyz").body;
  EXPECT_NE(why.find(".grant: Input/output error"), std::string::npos) << why;
  EXPECT_NE(server_->Get("/genid").status, 200);
  RepairDisk();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  EXPECT_GT(Id(), before);
  EndsInOrder();
}

TEST_F(FailingDiskTest, AKilledServerDoesNotResumeAGrantThatCannotBeSynced) {
  StartByHand();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  const int64_t before = Id();
  server_->Kill();
  BreakDisk();
  server_->StartAgain();
  ASSERT_TRUE(Logs(".grant: Input/output error")) << server_->log();
  EXPECT_NE(server_->Get("/genid").status, 200);
  server_->Kill();
  RepairDisk();
  server_->StartAgain();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  EXPECT_GT(Id(), before);
}

TEST_F(FailingDiskTest, AServerOfAClusterServesWithoutItsHintFilesAndLogsIt) {
  BreakDisk();
  StartInACluster();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  EXPECT_GT(Id(), 0);
  EXPECT_TRUE(Logs(".properties.new: Input/output error")) << server_->log();
  EXPECT_TRUE(Logs(".tags.new: Input/output error")) << server_->log();
  EndsInOrder();
  EXPECT_FALSE(Keeps(".properties"));
  EXPECT_FALSE(Keeps(".tags"));
}

TEST_F(FailingDiskTest, RemovesCachedTagsThatCannotBeUpdated) {
  StartInACluster();
  ASSERT_TRUE(Becomes(200)) << server_->log();
  ASSERT_TRUE(Keeps(".tags"));
  BreakDisk();
  const Finished made = Firn({"tags", "create", "order", "strategy=snowflake"});
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_TRUE(Eventually(kPatience, [&] { return server_->Get("/v1/ids/order").status == 200; }))
      << server_->log();
  EXPECT_FALSE(Keeps(".tags"));
  EndsInOrder();
}

}  // namespace
}  // namespace firn
