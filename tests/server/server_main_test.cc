// The program with a user's own parts, up to the point where it serves.

#include "server/server_main.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

int RunServer(std::vector<std::string> words, const Extensions& own) {
  words.insert(words.begin(), "own_server");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return ServerMain(static_cast<int>(words.size()), argv.data(), own);
}

Extensions Own() {
  Extensions own;
  own.strategies["voucher"] = [](const TagDefinition&) { return std::shared_ptr<Strategy>(); };
  own.plugins["single"] = [](const TagDefinition&) { return std::shared_ptr<Plugin>(); };
  own.stores["memory"] = []() -> std::unique_ptr<RangeStore> { throw 1; };
  return own;
}

TEST(ServerMainTest, HelpListsTheUsersPartsAndCreatesNothing) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunServer({"--help"}, Own()), 0);
  const std::string page = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(
      page.ends_with("Added by this program, for use in tags:\n"
                     "  strategy voucher\n  plugin single\n  store memory\n"))
      << page;
}

TEST(ServerMainTest, APartThatCannotBeCreatedEndsTheStartWithAMessage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TempDir folder;
  EXPECT_EXIT(exit(RunServer(
                  {"--registry=dir://" + (folder / "registry"), "--state_dir=" + (folder / "state"),
                   Cat("--listen=127.0.0.1:", FreePort()), "--admin_listen=127.0.0.1:0"},
                  Own())),
              testing::ExitedWithCode(1),
              "firn-server: this program's own store 'memory': its maker threw");
}

}  // namespace
}  // namespace firn
