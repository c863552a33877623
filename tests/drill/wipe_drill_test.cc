// The ensemble loses everything while whole servers issue numbers of a segment tag, and an operator
// who is slow, and knows only what is printed, restores the cluster.

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/drill/segment_cluster.h"

namespace firn {
namespace {

class WipeDrill : public SegmentCluster {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartEnsemble(1));
    std::ofstream(folder("stores.ini")) << "";
    ASSERT_NO_FATAL_FAILURE(
        ApplyTags("[order]\nstrategy = segment\nstep = 20\nstep_max = 200\nhold_minutes = 7\n"));
    ASSERT_NO_FATAL_FAILURE(StartServers(2, {"--issue_wait_ms=1000"}));
    StartLoad({.tags = {"order"}, .pause = Milliseconds(5), .awkward = "order"});
    ASSERT_TRUE(GoOn({"order"}));
  }

  std::string Trouble(size_t server) {
    const auto status = nlohmann::json::parse(servers()[server]->Admin("/v1/status").body, nullptr,
                                              /*allow_exceptions=*/false);
    return status.is_object() ? status.value("trouble", "") : "";
  }
  bool AlertsThatItIsFrozen(size_t server) {
    const std::string metrics = servers()[server]->Admin("/metrics").body;
    return metrics.find("\nfirn_cluster_frozen 1\n") != std::string::npos;
  }
  // Waits until both servers report `what` in log and status, and print the restore command.
  // Returns the first one's command.
  std::string Printed(const std::string& what) {
    std::string command;
    const bool both = Eventually(3 * kPatience, [&] {
      for (size_t server = 2; server-- > 0;) {
        const std::string trouble = Trouble(server);
        const size_t at = trouble.find("firn restore --");
        if (at == std::string::npos || trouble.find(what) == std::string::npos) return false;
        if (!AlertsThatItIsFrozen(server)) return false;
        command = trouble.substr(at);
      }
      return true;
    });
    EXPECT_TRUE(both) << Trouble(0) << "\n" << Trouble(1);
    return command;
  }
  // Runs it as if it were pasted into a shell.
  Finished Paste(std::string command) {
    command.replace(0, 4, BuiltProgram("firn"));
    return RunToEnd({"/bin/sh", "-c", command + " --workers=8"});
  }
  void ExpectWell() {
    EXPECT_TRUE(GoOn({"order"}, 200));
    EXPECT_FALSE(Meta().frozen) << Meta().reason;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      return Trouble(0).find("frozen") == std::string::npos &&
             Trouble(1).find("frozen") == std::string::npos;
    })) << Trouble(0);
    const Finished shown = Firn({"tags", "show", "order"});
    EXPECT_NE(shown.out.find("hold_minutes = 7"), std::string::npos) << shown.out;
    // Servers claim again once the restore's probation is over, and log what they have then.
    Finished audit;
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             audit = Firn({"audit"});
                             return audit.exit_code == 0;
                           }))
        << audit.out << audit.err;
    StopLoad();
    JudgeTag("order");
  }
};

TEST_F(WipeDrill, ThePrintedCommandRestoresAtTheFirstAttempt) {
  ASSERT_TRUE(ensemble().Wipe().ok());
  const std::string command = Printed("firn restore");

  // What a new user might try: the servers would never serve under another uuid.
  const Finished init = Firn({"init", "--brand-new", "--workers=8"});
  EXPECT_EQ(init.exit_code, 4) << init.out << init.err;
  EXPECT_NE(init.err.find("belongs to cluster"), std::string::npos) << init.err;

  const Finished restored = Paste(command);
  EXPECT_EQ(restored.exit_code, 0) << command << "\n" << restored.out << restored.err;
  ExpectWell();
}

// The operator does not wait for the servers to notice: the wait in `firn init` must be long
// enough.
TEST_F(WipeDrill, InitRightAfterAWipeRefusesBecauseOfTheRunningServers) {
  ASSERT_TRUE(ensemble().Wipe().ok());
  const Finished init = Firn({"init", "--brand-new", "--workers=8"});
  EXPECT_EQ(init.exit_code, 4) << init.out << init.err;
  EXPECT_NE(init.err.find("belongs to cluster"), std::string::npos) << init.err;
  const Finished restored = Paste(Printed("firn restore"));
  EXPECT_EQ(restored.exit_code, 0) << restored.out << restored.err;
  ExpectWell();
}
// The operator omits the tags at first: the servers detect that theirs are lost and stop. The
// command that they print then stays valid, however long it takes to paste it. print then is as
// good however long it takes to paste it.
TEST_F(WipeDrill, PrintsTheCommandAgainForAnOmittedTag) {
  ASSERT_TRUE(ensemble().Wipe().ok());
  const std::string command = Printed("firn restore");
  const Finished half = Paste(command.substr(0, command.find(" order=")));
  EXPECT_EQ(half.exit_code, 0) << half.out << half.err;
  const std::string again = Printed("frozen");
  EXPECT_TRUE(Meta().frozen);
  const Finished restored = Paste(again);
  EXPECT_EQ(restored.exit_code, 0) << again << "\n" << restored.out << restored.err;
  ExpectWell();
}

}  // namespace
}  // namespace firn
