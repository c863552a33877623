// The registry of a cluster loses everything, and an operator pastes the command that a server
// prints, as it stands, into a shell. Nothing that existed before may be missing then: settings of
// the root node, reservations, retired machine ids, tags and bounds.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/drill/drill.h"
#include "tests/server/program/running_server.h"

namespace firn {
namespace {

class PrintedCommandDrill : public Drill {
 protected:
  void StartCluster() {
    auto started = ZooKeeper::Start({.members = 1});
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    registry_ = "zk://" + zookeeper_->hosts() + kClusterPath;
    Run({"init", "--brand-new", "--workers=8", "--rack_bits=3", "--default_strategy=snowflake"});
    Run({"machines", "reserve", "0-9", "--reserved_for=the old system, part 'a'"});
    Run({"machines", "reserve", "12", "--reserved_for=another"});
    Run({"restore", "--retire=15"});
    Run({"tags", "create", "limited", "strategy=snowflake", "plugins=rate"});
  }
  void StartServer() {
    server_ = std::make_unique<RunningServer>(
        folder("server"),
        std::vector<std::string>{"--registry=" + registry(), "--session_timeout_ms=2000"});
    ASSERT_TRUE(Eventually(3 * kPatience, [&] { return Kept().find("another") != Kept().npos; }))
        << server_->log();
  }
  // The settings in the server's state folder.
  std::string Kept() {
    for (const auto& entry : std::filesystem::directory_iterator(folder("server"))) {
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
  nlohmann::json Json(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const Finished finished = Firn(std::move(arguments));
    return nlohmann::json::parse(finished.out, nullptr, /*allow_exceptions=*/false);
  }

  // Everything that the command has to bring back.
  struct Existing {
    std::string uuid, layout, default_strategy;
    int rack_bits = 0;
    std::map<int64_t, std::string> out_of_use{};  // by machine id
    nlohmann::json tags{};

    friend bool operator==(const Existing&, const Existing&) = default;
  };
  Existing Read() {
    const ClusterMeta meta = Meta();
    Existing existing{.uuid = meta.uuid,
                      .layout = meta.layout,
                      .default_strategy = meta.default_strategy,
                      .rack_bits = meta.rack_bits};
    for (const auto& slot : Json({"machines", "list"})) {
      const std::string use = slot.at("use");
      if (use != "reserved" && use != "retired") continue;
      existing.out_of_use[slot.at("machine")] = use == "reserved" ? slot.at("owner") : use;
    }
    existing.tags = Json({"tags", "show", "limited"});
    return existing;
  }

  std::string Printed() {
    std::string command;
    EXPECT_TRUE(Eventually(3 * kPatience, [&] {
      const auto status = nlohmann::json::parse(server_->Admin("/v1/status").body, nullptr, false);
      const std::string trouble = status.is_object() ? status.value("trouble", "") : "";
      const size_t at = trouble.find("firn restore --");
      if (at == std::string::npos) return false;
      command = trouble.substr(at);
      return true;
    })) << server_->log();
    return command;
  }
  // Pastes it into a shell in which `firn` is the program of this build.
  void PasteAndCompare(const std::string& command, const Existing& before) {
    const std::string program = BuiltProgram("firn");
    const Finished pasted = RunToEnd(
        {"/bin/sh", "-c",
         "PATH=" + std::filesystem::path(program).parent_path().string() + ":$PATH\n" + command});
    EXPECT_EQ(pasted.exit_code, 0) << command << "\n" << pasted.out << pasted.err;
    EXPECT_EQ(pasted.out.find("WARNING: --"), std::string::npos) << pasted.out;
    const Existing after = Read();
    EXPECT_EQ(after.uuid, before.uuid);
    EXPECT_EQ(after.layout, before.layout);
    EXPECT_EQ(after.rack_bits, before.rack_bits) << command;
    EXPECT_EQ(after.default_strategy, before.default_strategy) << command;
    EXPECT_EQ(after.out_of_use, before.out_of_use) << command;
    EXPECT_EQ(after.tags, before.tags) << command;
    EXPECT_TRUE(Eventually(3 * kPatience, [&] {
      return server_->Admin("/readyz").status == 200 &&
             server_->Get("/v1/ids/limited?count=1").status == 200 &&
             server_->Get("/v1/ids/undefined?count=1").status == 200;
    })) << server_->log();
  }

  std::unique_ptr<ZooKeeper> zookeeper_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(PrintedCommandDrill, ARunningServerPrintsACompleteCommand) {
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_NO_FATAL_FAILURE(StartServer());
  ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  const Existing before = Read();
  ASSERT_EQ(before.out_of_use.size(), 12u);
  ASSERT_TRUE(zookeeper_->Wipe().ok());
  PasteAndCompare(Printed(), before);
}

TEST_F(PrintedCommandDrill, AServerStartedAfterTheLossPrintsACompleteCommand) {
  ASSERT_NO_FATAL_FAILURE(StartCluster());
  ASSERT_NO_FATAL_FAILURE(StartServer());
  ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  ASSERT_TRUE(server_->KeepsItsHint());
  const Existing before = Read();
  server_->process().Signal(SIGTERM);
  ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  ASSERT_TRUE(zookeeper_->Wipe().ok());
  server_->StartAgain();
  PasteAndCompare(Printed(), before);
}

}  // namespace
}  // namespace firn
