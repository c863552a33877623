// Restores a cluster with a tag of short obfuscated ids: the usual gap would be beyond its last
// number.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/paste.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class ShortTagRestoreTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(keys_);
    fs::permissions(keys_, fs::perms::owner_all);
    const std::string key = keys_ + "/k1.key";
    std::ofstream(key) << std::string(64, '0');
    fs::permissions(key, fs::perms::owner_read | fs::perms::owner_write);
    Do({"init", "--brand-new", "--force", "--workers=2"});
    Do({"tags", "create", "coupon", "strategy=segment", "step=20", "start=1", "plugins=obfuscate",
        "obfuscate.width=8", "obfuscate.key=k1", "--key_dir=" + keys_});
    server_ = std::make_unique<RunningServer>(
        dir_ / "state", std::vector<std::string>{"--registry=" + registry_, "--key_dir=" + keys_});
  }

  Finished Firn(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), BuiltProgram("firn"));
    arguments.push_back("--registry=" + registry_);
    return RunToEnd(arguments);
  }
  void Do(const std::vector<std::string>& arguments) const {
    const Finished done = Firn(arguments);
    ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  }
  void IssueSome() {
    for (int i = 0; i < 10; ++i) {
      RunningServer::Answer answer;
      ASSERT_TRUE(Eventually(kPatience,
                             [&] {
                               answer = server_->Get("/v1/ids/coupon?count=10");
                               return answer.status == 200;
                             }))
          << answer.body << server_->log();
      const Json json = JsonOf(answer.body);
      for (const Json& id : json.at("ids")) {
        EXPECT_TRUE(issued_.insert(id.text()).second) << id.text() << " was issued twice";
      }
    }
  }
  void Stop() {
    server_->process().Signal(SIGTERM);
    ASSERT_TRUE(server_->process().Wait(kPatience).has_value());
  }

  TempDir dir_;
  const std::string keys_ = dir_ / "keys", registry_ = "dir://" + (dir_ / "registry");
  std::set<std::string> issued_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(ShortTagRestoreTest, TheTagContinuesAndEveryScreenShowsItsEnd) {
  const fs::path nodes = dir_ / "registry", backup = dir_ / "backup";
  ASSERT_NO_FATAL_FAILURE(IssueSome());
  ASSERT_NO_FATAL_FAILURE(Stop());
  fs::copy(nodes, backup, fs::copy_options::recursive);
  server_->StartAgain();
  ASSERT_NO_FATAL_FAILURE(IssueSome());
  ASSERT_NO_FATAL_FAILURE(Stop());
  for (const auto& entry : fs::directory_iterator(nodes)) fs::remove_all(entry.path());
  fs::copy(backup, nodes, fs::copy_options::recursive);
  server_->StartAgain();
  std::string command;
  ASSERT_TRUE(Eventually(kPatience, [&] {
    command = CommandIn(PrintedCommand::kRestore, server_->log());
    return !command.empty();
  })) << server_->log();

  // The gap would end the tag for ever, so the restore asks.
  const Finished asked = Paste(PrintedCommand::kRestore, command);
  EXPECT_EQ(asked.exit_code, 4) << asked.out << asked.err;
  EXPECT_THAT(asked.err, HasSubstr("is beyond its last number, 99999999"));
  std::string answered = CommandIn(PrintedCommand::kRestore, asked.err);
  const size_t at = answered.find("NUMBER");
  ASSERT_NE(at, answered.npos) << asked.err;
  const Finished restored =
      Paste(PrintedCommand::kRestore, std::string(answered).replace(at, 6, "99999801"));
  ASSERT_EQ(restored.exit_code, 0) << restored.out << restored.err;
  ASSERT_NO_FATAL_FAILURE(IssueSome());  // of the numbers that are left

  // A slow disk refuses a call earlier, with another reason.
  const auto ends = [&] { return server_->Get("/v1/ids/coupon?count=10").body.find("EXHAUSTED"); };
  ASSERT_TRUE(Eventually(kPatience, [&] { return ends() != std::string::npos; }));
  EXPECT_EQ(server_->Admin("/readyz?tag=coupon").status, 503);
  EXPECT_THAT(server_->Admin("/v1/status").body, HasSubstr("EXHAUSTED"));
  const std::string ended = "its numbers ended at 99999999";
  const Finished doctor = Firn({"doctor"}), audit = Firn({"audit"});
  EXPECT_EQ(doctor.exit_code, 4) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr(ended));
  EXPECT_EQ(audit.exit_code, 1) << audit.out;
  EXPECT_THAT(audit.out, HasSubstr(ended));
}

}  // namespace
}  // namespace firn
