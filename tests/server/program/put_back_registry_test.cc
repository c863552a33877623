// A registry that is put back from a backup while its server is stopped.

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

class PutBackRegistryTest : public testing::Test {
 protected:
  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry_, "--timeout_ms=30000"});
  }
  // Starts the same server each time: the names of its state files contain its port.
  RunningServer& Start() {
    if (server_ == nullptr) {
      server_ = std::make_unique<RunningServer>(
          dir_ / "state", std::vector<std::string>{"--registry=" + registry_});
    } else {
      server_->StartAgain();
    }
    return *server_;
  }
  // Runs the server until it has issued so many numbers of the tag `order`, and stops it cleanly.
  void IssueAndStop(int count) {
    RunningServer& server = Start();
    ASSERT_TRUE(server.BecomesReady()) << server.log();
    for (int i = 0; i < count; ++i) {
      RunningServer::Answer answer;
      ASSERT_TRUE(Eventually(kPatience, [&] {
        answer = server.Get("/api/segment/get/order");
        return answer.status == 200;
      })) << answer.body;
      EXPECT_TRUE(issued_.insert(std::stoll(answer.body)).second) << answer.body << " twice";
    }
    server.process().Signal(SIGTERM);
    ASSERT_TRUE(server.process().Wait(kPatience).has_value());
  }
  // Issues numbers after a backup was saved, puts it back, and restores as the server prints.
  void Run(const std::function<void()>& save, const std::function<void()>& put_back) {
    const Finished made = Firn({"init", "--brand-new", "--force", "--workers=2"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    ASSERT_EQ(Firn({"tags", "create", "order", "strategy=segment", "step=10"}).exit_code, 0);
    IssueAndStop(5);
    save();
    IssueAndStop(50);
    put_back();
    RunningServer& server = Start();
    std::string command;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      const std::string log = server.log();
      const size_t at = log.rfind("firn restore --");
      if (at != log.npos) command = log.substr(at, log.find('\n', at) - at);
      return command.find(" --from=") != command.npos;
    })) << server.log();
    EXPECT_NE(server.Get("/api/segment/get/order").status, 200);
    EXPECT_NE(Firn({"audit"}).exit_code, 0);
    // Restored as the server prints it, it continues above everything that it issued.
    const std::string programs = fs::path(BuiltProgram("firn")).parent_path();
    const Finished restored = RunToEnd(
        {"/bin/sh", "-c", "PATH=" + programs + ":$PATH\n" + command + " --timeout_ms=30000"});
    ASSERT_EQ(restored.exit_code, 0) << restored.out << restored.err << command;
    RunningServer::Answer answer;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      answer = server.Get("/api/segment/get/order");
      return answer.status == 200;
    })) << answer.body;
    EXPECT_GT(std::stoll(answer.body), *issued_.rbegin());
  }

  TempDir dir_;
  std::string registry_ = "dir://" + (dir_ / "registry");
  std::set<int64_t> issued_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(PutBackRegistryTest, ADirectoryPutBackFreezesTheCluster) {
  const fs::path nodes = dir_ / "registry", backup = dir_ / "backup";
  Run([&] { fs::copy(nodes, backup, fs::copy_options::recursive); },
      [&] {
        for (const auto& entry : fs::directory_iterator(nodes)) fs::remove_all(entry.path());
        fs::copy(backup, nodes, fs::copy_options::recursive);
      });
}

TEST_F(PutBackRegistryTest, AZooKeeperPutBackFreezesTheCluster) {
  auto started = ZooKeeper::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  const std::unique_ptr<ZooKeeper> zookeeper = *std::move(started);
  registry_ = "zk://" + zookeeper->hosts() + "/firn/put-back";
  Run([&] { ASSERT_TRUE(zookeeper->SaveData().ok()); },
      [&] { ASSERT_TRUE(zookeeper->RestoreData().ok()); });
}

}  // namespace
}  // namespace firn
