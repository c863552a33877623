// The registry of a cluster loses all data, and an operator pastes the command that a server
// prints, unchanged, into a shell. The command must restore everything: settings of the root node,
// reservations, retired machine ids, tags and bounds.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/json/json.h"
#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/paste.h"

namespace firn {
namespace {

class PrintedCommandDrill : public Drill {
 protected:
  void StartZooKeeper() {
    auto started = ZooKeeper::Start({.members = 1});
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    registry_ = "zk://" + zookeeper_->hosts() + kClusterPath;
  }
  // Creates a cluster with everything that a command must restore, and a server that issues ids.
  void StartCluster() {
    Run({"init", "--brand-new", "--force", "--workers=8", "--rack_bits=3",
         "--default_strategy=snowflake"});
    Run({"machines", "reserve", "0-9", "--reserved_for=the old system, part 'a'"});
    Run({"machines", "reserve", "12", "--reserved_for=another"});
    Run({"restore", "--set=retire=15"});
    Run({"tags", "create", "limited", "strategy=snowflake", "plugins=rate"});
    Run({"tags", "create", "order", "strategy=segment", "start=1", "step=10", "hold_minutes=7"});
    ASSERT_NO_FATAL_FAILURE(StartServer());
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
    ASSERT_TRUE(server_->KeepsItsHint());
    ASSERT_NO_FATAL_FAILURE(TakeNumbers(25));
    before_ = Read();
    bound_ = HighestBound();
    ASSERT_EQ(before_.out_of_use.size(), 12u);
    ASSERT_EQ(before_.tags.size(), 2u);
  }
  void StopServer() {
    server_->process().Signal(SIGTERM);
    ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  }
  void StartServer() {
    server_ = std::make_unique<RunningServer>(
        folder("server"),
        std::vector<std::string>{"--registry=" + registry(), "--session_timeout_ms=2000"});
    ASSERT_TRUE(Eventually(3 * kPatience, [&] { return Kept().find("another") != Kept().npos; }))
        << server_->log();
  }
  // Returns the settings in the server's state folder.
  std::string Kept() {
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(folder("server"), missing)) {
      if (entry.path().extension() != ".root") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      return text.str();
    }
    return "";
  }
  void Run(std::vector<std::string> arguments) {
    const Finished finished = Firn(std::move(arguments));
    ASSERT_EQ(finished.exit_code, 0) << finished.out << finished.err;
  }
  Json FirnJson(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Finished finished = Firn(std::move(arguments));
    return JsonOf(finished.out);
  }

  // Everything that the command must restore.
  struct Existing {
    std::string uuid, layout, default_strategy;
    int rack_bits = 0;
    std::map<int64_t, std::string> out_of_use{};  // by machine id
    Json tags{};                                  // without ledgers

    friend bool operator==(const Existing&, const Existing&) = default;
  };
  Existing Read() {
    const ClusterMeta meta = Meta();
    Existing existing{.uuid = meta.uuid,
                      .layout = meta.layout,
                      .default_strategy = meta.default_strategy,
                      .rack_bits = meta.rack_bits};
    for (const auto& slot : FirnJson({"machines", "list"})) {
      const std::string& use = slot.at("use").text();
      if (use != "reserved" && use != "retired") continue;
      existing.out_of_use[NumberOf(slot.at("machine"))] =
          use == "reserved" ? slot.at("owner").text() : use;
    }
    for (Json tag : FirnJson({"tags", "show", "limited", "order"})) {
      for (const char* ledger : {"high", "start"}) tag.erase(ledger);
      existing.tags.push_back(std::move(tag));
    }
    return existing;
  }
  // Returns the highest time that ids of any machine id may have reached.
  WallMs HighestBound() {
    int64_t highest = Meta().floor.ms();
    const Json audit = FirnJson({"audit"});
    for (const auto& slot : audit.at("machines")) {
      highest = std::max(highest, NumberOf(slot.at("bound_ms")));
    }
    return WallMs(highest);
  }
  // Takes numbers of the tag `order`, so that its ledger moves.
  void TakeNumbers(int count) {
    for (int i = 0; i < count; ++i) {
      RunningServer::Answer answer;
      ASSERT_TRUE(Eventually(kPatience, [&] {
        answer = server_->Get("/api/segment/get/order");
        return answer.status == 200;
      })) << answer.body;
      taken_ = std::max<int64_t>(taken_, std::stoll(answer.body));
    }
  }

  std::string Printed() {
    std::string command;
    EXPECT_TRUE(Eventually(3 * kPatience, [&] {
      const Json status = JsonOf(server_->Admin("/v1/status").body);
      const std::string& trouble = status.at("trouble").text();
      command = CommandIn(PrintedCommand::kRestore, trouble);
      return !command.empty();
    })) << server_->log();
    return command;
  }
  // Pastes the command. If it asks for a number that no running server knows, adds the number and
  // pastes it again.
  Finished PasteAnswered(const std::string& command) {
    const Finished asked = Paste(PrintedCommand::kRestore, command);
    if (asked.exit_code != 4) return asked;
    std::string answered = CommandIn(PrintedCommand::kRestore, asked.err);
    const size_t at = answered.find("NUMBER");
    EXPECT_NE(at, answered.npos) << asked.err;
    if (at != answered.npos) answered.replace(at, 6, std::to_string(taken_));
    return Paste(PrintedCommand::kRestore, answered);
  }
  void PasteAndCompare(const std::string& command) {
    const Finished pasted = PasteAnswered(command);
    EXPECT_EQ(pasted.exit_code, 0) << command << "\n" << pasted.out << pasted.err;
    EXPECT_EQ(pasted.out.find("WARNING: --"), std::string::npos) << pasted.out;
    const Existing after = Read();
    EXPECT_EQ(after.uuid, before_.uuid);
    EXPECT_EQ(after.layout, before_.layout);
    EXPECT_EQ(after.rack_bits, before_.rack_bits) << command;
    EXPECT_EQ(after.default_strategy, before_.default_strategy) << command;
    EXPECT_EQ(after.out_of_use, before_.out_of_use) << command;
    EXPECT_EQ(after.tags, before_.tags) << command;
    EXPECT_GE(Meta().floor, bound_) << command;
    if (!server_->process().Running()) server_->StartAgain();
    EXPECT_TRUE(Eventually(3 * kPatience, [&] {
      return server_->Admin("/readyz").status == 200 &&
             server_->Get("/v1/ids/limited?count=1").status == 200 &&
             server_->Get("/v1/ids/undefined?count=1").status == 200;
    })) << server_->log();
    const int64_t taken = std::exchange(taken_, 0);
    ASSERT_NO_FATAL_FAILURE(TakeNumbers(1));
    EXPECT_GT(taken_, taken) << command;
  }

  Existing before_{};
  WallMs bound_{};
  int64_t taken_ = 0;  // the highest number taken
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(PrintedCommandDrill, ARunningServerPrintsACompleteCommand) {
  ASSERT_NO_FATAL_FAILURE(StartZooKeeper());
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_TRUE(zookeeper_->Wipe().ok());
  PasteAndCompare(Printed());
}

TEST_F(PrintedCommandDrill, AServerStartedAfterTheLossPrintsACompleteCommand) {
  ASSERT_NO_FATAL_FAILURE(StartZooKeeper());
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_NO_FATAL_FAILURE(StopServer());
  ASSERT_TRUE(zookeeper_->Wipe().ok());
  server_->StartAgain();
  PasteAndCompare(Printed());
}

// An operator creates a cluster over the lost one while no server runs.
TEST_F(PrintedCommandDrill, AServerStartedOnAClusterThatReplacedItsOwnPrintsACompleteCommand) {
  ASSERT_NO_FATAL_FAILURE(StartZooKeeper());
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_NO_FATAL_FAILURE(StopServer());
  ASSERT_TRUE(zookeeper_->Wipe().ok());
  Run({"init", "--brand-new", "--force", "--workers=4"});
  ASSERT_NE(Meta().uuid, before_.uuid);
  server_->StartAgain();
  const std::string command = Printed();
  const std::string ready = server_->Admin("/readyz").body;
  for (const char* remedy : {"--registry", "--state_dir", "firn restore"}) {
    EXPECT_NE(ready.find(remedy), ready.npos) << ready;
  }
  PasteAndCompare(command);
}

TEST_F(PrintedCommandDrill, AServerOfALostDirectoryPrintsACompleteCommandAndEnds) {
  registry_ = "dir://" + folder("registry");
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_NO_FATAL_FAILURE(StopServer());
  std::filesystem::remove_all(folder("registry"));
  server_->StartAgain();
  ASSERT_TRUE(server_->process().Wait(kPatience).has_value());
  PasteAndCompare(CommandIn(PrintedCommand::kRestore, server_->log()));
}

}  // namespace
}  // namespace firn
