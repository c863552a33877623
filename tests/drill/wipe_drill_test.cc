// The ensemble loses all data while whole servers issue numbers of a segment tag. A slow operator,
// who knows only the printed messages, restores the cluster.

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/json/json.h"
#include "common/time/clock.h"
#include "tests/drill/segment_cluster.h"
#include "tests/support/json_of.h"

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
    AwaitSettings("uuid");
  }

  // Waits until the servers' state folders contain the root node's settings with this text. Without
  // them, the restore would ask for the settings.
  void AwaitSettings(const std::string& text) const {
    for (const char* server : {"server0", "server1"}) {
      ASSERT_TRUE(Eventually(kPatience, [&] { return Knows(folder(server), text); }));
    }
  }
  static bool Knows(const std::string& state, const std::string& text) {
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(state, missing)) {
      if (entry.path().extension() != ".root") continue;
      std::ostringstream settings;
      settings << std::ifstream(entry.path()).rdbuf();
      return settings.str().find(text) != std::string::npos;
    }
    return false;
  }

  std::string Trouble(size_t server) {
    const Json status = JsonOf(servers()[server]->Admin("/v1/status").body);
    return status.at("trouble").text();
  }
  bool AlertsThatItIsFrozen(size_t server) {
    const std::string metrics = servers()[server]->Admin("/metrics").body;
    return metrics.find("\nfirn_cluster_frozen 1\n") != std::string::npos;
  }
  // Waits until both servers report `what` in log and status, and print the restore command.
  // Returns the first server's command.
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
  // Runs the command as if it were pasted into a shell.
  Finished Paste(std::string command) {
    command.replace(0, 4, BuiltProgram("firn"));
    return RunToEnd({"/bin/sh", "-c", command + " --set=workers=8"});
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
    // Servers claim again after the restore's probation, so the audit succeeds only later.
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

  // A new user might try this. It must be refused, because the servers would never serve under
  // another uuid.
  const Finished init = Firn({"init", "--brand-new", "--workers=8"});
  EXPECT_EQ(init.exit_code, 4) << init.out << init.err;
  EXPECT_NE(init.err.find("belongs to cluster"), std::string::npos) << init.err;

  const Finished restored = Paste(command);
  EXPECT_EQ(restored.exit_code, 0) << command << "\n" << restored.out << restored.err;
  ExpectWell();
}

// The operator does not wait until the servers detect the loss, so the wait in `firn init` must be
// long enough.
TEST_F(WipeDrill, InitRightAfterAWipeRefusesBecauseOfTheRunningServers) {
  ASSERT_TRUE(ensemble().Wipe().ok());
  const Finished init = Firn({"init", "--brand-new", "--workers=8"});
  EXPECT_EQ(init.exit_code, 4) << init.out << init.err;
  EXPECT_NE(init.err.find("belongs to cluster"), std::string::npos) << init.err;
  const Finished restored = Paste(Printed("firn restore"));
  EXPECT_EQ(restored.exit_code, 0) << restored.out << restored.err;
  ExpectWell();
}
// Measures the longest time without an answer for each tag.
class OutageWatch {
 public:
  // The takings must outlive it.
  explicit OutageWatch(std::map<std::string, const Takings*> tags)
      : tags_(std::move(tags)), thread_([this] { Run(); }) {}
  ~OutageWatch() { End(); }
  OutageWatch(const OutageWatch&) = delete;
  OutageWatch& operator=(const OutageWatch&) = delete;

  // Ends the measurement and returns its results by tag.
  const std::map<std::string, Milliseconds>& End() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
    return longest_;
  }

 private:
  void Run() {
    std::map<std::string, std::pair<int64_t, BootMs>> last;
    const BootMs began = TestNow();
    while (!ended_) {
      for (const auto& [tag, takings] : tags_) {
        auto& [answers, since] = last.try_emplace(tag, -1, began).first->second;
        const BootMs now = TestNow();
        const int64_t before = std::exchange(answers, takings->answers());
        longest_[tag] = std::max(longest_[tag], now - since);
        if (answers != before) since = now;
      }
      SleepFor(Milliseconds(5));
    }
  }

  const std::map<std::string, const Takings*> tags_;
  std::map<std::string, Milliseconds> longest_;  // used by the thread until it has ended
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

// A cluster that serves undefined tags, beside another system that uses machine ids 0 and 1. The
// tests check the answers for each kind of tag after the wipe, and the logs.
class WipeOutageDrill : public WipeDrill {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartEnsemble(1, 8, {"--default_strategy=snowflake"}));
    const Finished reserved = Firn({"machines", "reserve", "0-1", "--reserved_for=another"});
    ASSERT_EQ(reserved.exit_code, 0) << reserved.err;
    std::ofstream(folder("stores.ini")) << "";
    ASSERT_NO_FATAL_FAILURE(
        ApplyTags("[order]\nstrategy = segment\nstep = 20\n"
                  "step_max = 200\nhold_minutes = 7\n"));
    ASSERT_NO_FATAL_FAILURE(StartServers(2, {"--issue_wait_ms=1000"}));
    StartLoad({.tags = kTags, .pause = Milliseconds(2)});
    ASSERT_TRUE(GoOn(kTags));
    AwaitSettings("another");
    ASSERT_TRUE(Eventually(kPatience, [&] { return LongClaims() == 2; }));
  }

  // Returns the number of claims that last longer than a restore, which waits 20 s for reports. The
  // first window of a claim is shorter.
  int LongClaims() {
    constexpr int64_t kLongMs = 50'000;
    const int64_t least = SystemClock().Wall().ms() + kLongMs;
    int claims = 0;
    const Json audit = JsonOf(Firn({"audit", "--all", "--json"}).out);
    for (const auto& slot : audit.at("machines")) {
      claims += NumberOf(slot.at("bound_ms")) >= least ? 1 : 0;
    }
    return claims;
  }

  std::map<std::string, const Takings*> All() {
    std::map<std::string, const Takings*> all;
    for (const std::string& tag : kTags) all[tag] = &takings(tag);
    return all;
  }
  // Returns the errors that a server has logged.
  std::vector<std::string> Alarms(size_t server) {
    std::istringstream lines(servers()[server]->log());
    std::vector<std::string> alarms;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('E')) alarms.push_back(std::move(line));
    }
    return alarms;
  }
  // Returns whether an error reports the loss of the registry's data, which is the only fault here.
  static bool IsOfTheLoss(const std::string& alarm) {
    static constexpr std::array<std::string_view, 4> kWords{"root node", "data must be restored",
                                                            "frozen", "its node is missing"};
    return std::ranges::any_of(
        kWords, [&](std::string_view word) { return alarm.find(word) != alarm.npos; });
  }
  std::vector<int64_t> Reserved() {
    std::vector<int64_t> reserved;
    const Finished listed = Firn({"machines", "list", "--json"});
    for (const auto& slot : JsonOf(listed.out)) {
      if (slot.at("use") == "reserved") reserved.push_back(NumberOf(slot.at("machine")));
    }
    return reserved;
  }

  // A tag with a ledger, a defined tag that the claim covers, and an undefined tag.
  const std::vector<std::string> kTags{"order", "default", "undefined"};
};

// One server is down while the operator restores.
TEST_F(WipeOutageDrill, PlainTagsAreServedThroughoutAndNoAlarmIsFalse) {
  OutageWatch outage(All());
  TakeCounts();
  ASSERT_TRUE(ensemble().Wipe().ok());
  const std::string command = Printed("firn restore");
  servers()[1]->Kill();
  const Finished restored = Paste(command);
  ASSERT_EQ(restored.exit_code, 0) << command << "\n" << restored.out << restored.err;
  const std::vector<std::string> alarms = Alarms(0);
  EXPECT_TRUE(GoOn(kTags, 200));
  const CallCounts plain = TakeCounts()["default"];
  EXPECT_EQ(plain.refused, 0) << plain.last_trouble;
  servers()[1]->StartAgain();
  EXPECT_TRUE(servers()[1]->BecomesReady()) << servers()[1]->log();
  EXPECT_TRUE(GoOn(kTags, 200));

  for (const auto& [tag, longest] : outage.End()) Figure("without an answer, tag " + tag, longest);
  EXPECT_FALSE(alarms.empty()) << "the loss was not reported";
  EXPECT_EQ(Alarms(0), alarms) << "an alarm although the cluster was restored";
  for (size_t server = 0; server < 2; ++server) {
    for (const std::string& alarm : Alarms(server)) EXPECT_TRUE(IsOfTheLoss(alarm)) << alarm;
  }
  Count("alarms", static_cast<int64_t>(alarms.size() + Alarms(1).size()));

  EXPECT_EQ(Meta().default_strategy, "snowflake");
  EXPECT_EQ(Reserved(), (std::vector<int64_t>{0, 1}));
  ExpectWell();
  for (const char* tag : {"default", "undefined"}) {
    EXPECT_EQ(takings(tag).Judge().duplicates, 0) << tag;
  }
}

}  // namespace
}  // namespace firn
