// Tests `firn drill watch` on a real cluster.

#include <csignal>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

std::string ContentOf(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Three servers on a directory registry.
class FirnDrillTest : public testing::Test {
 protected:
  void Start(int count) {
    for (int i = 0; i < count; ++i) {
      addresses_.push_back("127.0.0.1:" + std::to_string(FreePort()));
      const std::string name = std::to_string(i);
      servers_.emplace_back(Words{BuiltProgram("firn-server"), "--registry=" + registry_,
                                  "--listen=" + addresses_.back(),
                                  "--admin_listen=127.0.0.1:" + std::to_string(FreePort()),
                                  "--state_dir=" + (folder_ / name)},
                            Process::Options{.output_file = folder_ / (name + ".log")});
      ASSERT_TRUE(Eventually(kPatience, [&] { return Firn({"next"}, i).exit_code == 0; }));
    }
  }
  // Runs firn on one server, or on all.
  Finished Firn(Words words, int server = -1) {
    words.insert(words.begin(), BuiltProgram("firn"));
    words.insert(words.end(), {"--deadline_ms=30000", "--attempt_ms=3000",
                               server < 0 ? "--registry=" + registry_
                                          : "--servers=list://" + addresses_[At(server)]});
    return RunToEnd(words, Milliseconds(180'000));
  }
  static size_t At(int server) { return static_cast<size_t>(server); }

  TempDir folder_;
  const std::string registry_ = "dir://" + (folder_ / "registry");
  std::vector<std::string> addresses_;
  std::vector<Process> servers_;
};

TEST_F(FirnDrillTest, WatchFindsNoBrokenPromiseWhenAServerIsKilled) {
  Start(3);
  const std::string svg = folder_ / "drill.svg", out = folder_ / "watched";
  Process watch({"sh", "-c", "exec \"$0\" \"$@\" 2>&1 </dev/null", BuiltProgram("firn"), "drill",
                 "watch", "--rate=200", "--svg=" + svg, "--registry=" + registry_,
                 "--deadline_ms=30000", "--attempt_ms=3000"},
                Process::Options{.output_file = out});
  const auto seconds = [&] {
    const std::string said = ContentOf(out);
    size_t count = 0;
    for (size_t at = 0; (at = said.find("calls/s", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  ASSERT_TRUE(Eventually(kPatience, [&] { return seconds() >= 2; })) << ContentOf(out);
  servers_[0].Kill();
  const size_t before = seconds();
  ASSERT_TRUE(Eventually(kPatience, [&] { return seconds() >= before + 4; })) << ContentOf(out);
  watch.Signal(SIGINT);
  // The audit may report a fault while the registry still lists the killed server.
  ASSERT_TRUE(watch.Wait(kPatience).has_value());
  const std::string said = ContentOf(out);
  EXPECT_NE(said.find(", 0 duplicates\n"), std::string::npos) << said;
  EXPECT_NE(said.find("calls failed  0 of "), std::string::npos) << said;
  EXPECT_NE(said.find("\nverdict       "), std::string::npos) << said;
  EXPECT_NE(said.find("\nmachine id    "), std::string::npos) << said;
  EXPECT_NE(said.find("127.0.0.1:"), std::string::npos) << "no mark was recorded: " << said;
  const std::string picture = ContentOf(svg);
  EXPECT_TRUE(picture.starts_with("<svg ") && picture.ends_with("</svg>\n")) << picture;
  EXPECT_NE(picture.find("class='mark'"), std::string::npos) << picture;
}

TEST_F(FirnDrillTest, WatchEndsAfterItsDurationAndPrintsJson) {
  Start(1);
  const Finished done = Firn({"drill", "watch", "--for=2s", "--rate=50", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  const Json verdict = JsonOf(done.out);
  EXPECT_EQ(verdict.at("kept"), true);
  EXPECT_EQ(verdict.at("duplicates"), 0);
  EXPECT_EQ(verdict.at("out_of_order"), 0);
  EXPECT_EQ(verdict.at("order_checked"), verdict.at("ids_checked"));
  EXPECT_GE(verdict.at("seconds").size(), 1U);
  EXPECT_EQ(verdict.at("machines").size(), 1U);
}

TEST_F(FirnDrillTest, AFailedCallIsABrokenPromise) {
  Start(1);
  servers_[0].Pause();
  const Finished gone = Firn({"drill", "watch", "--for=1s"}, 0);
  EXPECT_EQ(gone.exit_code, 3) << "without a first id there is no drill: " << gone.err;
  EXPECT_EQ(Firn({"drill", "watch", "--for=ages"}, 0).exit_code, 2);
  servers_[0].Resume();
  // A tag with a low rate limit.
  ASSERT_EQ(Firn({"tags", "create", "rare", "plugins=limit", "limit.per_second=1"}).exit_code, 2)
      << "`tags` has no --deadline_ms";
  const Finished made = RunFirn(
      {"tags", "create", "rare", "plugins=limit", "limit.per_second=1", "--registry=" + registry_});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  ASSERT_TRUE(Eventually(kPatience, [&] { return Firn({"next", "rare"}, 0).exit_code == 0; }));
  ASSERT_TRUE(Eventually(kPatience, [&] {
    const Finished rare = Firn({"drill", "watch", "rare", "--for=1s", "--json"}, 0);
    return rare.exit_code == 1 && NumberOf(JsonOf(rare.out).at("failed")) > 0;
  }));
}

}  // namespace
}  // namespace firn
