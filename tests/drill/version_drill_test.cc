// Tests two builds of Firn in one cluster, under load. Each build creates a cluster that the other
// one joins, and continues from the other build's state after a stop or a kill. Servers of this
// build hold one machine id or several, servers of the other build always one. FIRN_OTHER_BIN names
// the folder of the other build's programs. Without it, this build is used in its place.
// tools/versions builds older commits for this test.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "common/time/clock.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

// Pause between a caller's calls. Each call opens a connection, whose port cannot be reused at
// once.
constexpr Milliseconds kPause{2};

enum class Build { kThis, kOther };

Build Opposite(Build build) { return build == Build::kThis ? Build::kOther : Build::kThis; }

std::string ProgramOf(Build build, const std::string& name) {
  const char* const folder = std::getenv("FIRN_OTHER_BIN");
  if (build == Build::kThis || folder == nullptr) return BuiltProgram(name);
  return std::string(folder) + "/" + name;
}

// A server's place, state folder and ports, used by one build at a time.
class Seat {
 public:
  Seat(const std::string& folder, const std::string& registry, Build build, size_t machine_ids)
      : program_(folder + ".sh"), machine_ids_(machine_ids), build_(build) {
    WriteProgram();
    server_.emplace(folder,
                    std::vector<std::string>{"--registry=" + registry, "--drain_notice_ms=0"},
                    std::vector<std::string>{"sh", program_});
  }

  RunningServer& server() { return *server_; }

  // Waits until the server is ready, with every machine id that it should have.
  void Serves() {
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
    ASSERT_TRUE(Eventually(kPatience, [&] { return Machines().size() == wanted(); }))
        << Json(Machines()) << server_->log();
  }

  // Stops the server, and starts the other build with the same name and state. The server must get
  // its earlier machine ids again, and the first one in any case.
  void Swap(bool killed) {
    const std::vector<int> before = Machines();
    if (killed) {
      server_->Kill();
    } else {
      server_->process().Signal(SIGTERM);
      ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
    }
    build_ = Opposite(build_);
    WriteProgram();
    server_->StartAgain();
    ASSERT_NO_FATAL_FAILURE(Serves());
    if (before.size() > most_.size()) most_ = before;
    const std::vector<int> after = Machines();
    for (size_t i = 0; i < std::min(most_.size(), after.size()); ++i) {
      EXPECT_EQ(after[i], most_[i]) << "the machine id of claim " << i + 1 << server_->log();
    }
  }

 private:
  size_t wanted() const { return build_ == Build::kThis ? machine_ids_ : 1; }

  // Writes a wrapper script that starts the build, because an unknown flag would prevent a build
  // from starting.
  void WriteProgram() const {
    std::ofstream script(program_, std::ios::trunc);
    script << "shift; exec '" << ProgramOf(build_, "firn-server") << "' \"$@\"";
    if (wanted() > 1) script << " --machine_ids=" << wanted() << " --io_threads=" << wanted();
    script << "\n";
  }

  // Returns the server's machine ids, in its order. Older builds have one, and report no list.
  std::vector<int> Machines() const {
    const Json status = JsonOf(server_->Admin("/v1/status").body);
    std::vector<int> held;
    if (!status.contains("machine")) return held;
    if (!status.contains("machines")) return {NumberOf<int>(status.at("machine"))};
    for (const Json& one : status.at("machines")) {
      if (one.at("claim") == "holding") held.push_back(NumberOf<int>(one.at("machine")));
    }
    return held;
  }

  const std::string program_;
  const size_t machine_ids_;
  Build build_;
  std::vector<int> most_;
  std::optional<RunningServer> server_;
};

// Callers that each make one call after another, and all ids that they got.
class Load {
 public:
  Load(const std::vector<Seat*>& seats, const std::vector<std::string>& targets) {
    for (const std::string& target : targets) {
      for (Seat* seat : seats) {
        callers_.emplace_back([this, &server = std::as_const(seat->server()), target] {
          for (; !stop_; SleepFor(kPause)) Keep(target, server.Get(target));
        });
      }
    }
  }
  ~Load() { Stop(); }

  void Stop() {
    stop_ = true;
    for (std::thread& caller : callers_) {
      if (caller.joinable()) caller.join();
    }
  }
  size_t ids() const {
    const std::scoped_lock lock(mutex_);
    return seen_.size();
  }
  const std::vector<std::string>& twice() const { return twice_; }

 private:
  // Records the ids by target, because numbers of the segment tag are not snowflake ids.
  void Keep(const std::string& target, const RunningServer::Answer& answer) {
    if (answer.status != 200) return;
    const std::scoped_lock lock(mutex_);
    std::string id = target + " " + answer.body;
    if (!seen_.insert(id).second) twice_.push_back(std::move(id));
  }

  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::unordered_set<std::string> seen_;
  std::vector<std::string> twice_;
  std::vector<std::thread> callers_;
};

// Parameters: the build that creates the cluster, and the number of machine ids of this build's
// servers.
class VersionDrill : public testing::TestWithParam<std::tuple<Build, size_t>> {
 protected:
  Finished Firn(Build build, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ProgramOf(build, "firn"));
    arguments.push_back("--registry=" + registry_);
    return RunToEnd(arguments);
  }

  void Run() {
    const auto [maker, machine_ids] = GetParam();
    Finished done = Firn(maker, {"init", "--brand-new", "--workers=16"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    done = Firn(maker, {"tags", "create", "number", "strategy=segment"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    Seat one(dir_ / "one", registry_, maker, machine_ids);
    Seat two(dir_ / "two", registry_, Opposite(maker), machine_ids);
    for (Seat* seat : {&one, &two}) ASSERT_NO_FATAL_FAILURE(seat->Serves());
    Load load({&one, &two}, {"/genid", "/api/segment/get/number"});
    // Each build is both stopped and killed.
    for (const bool killed : {false, true, true, false}) {
      for (Seat* seat : {&one, &two}) {
        ASSERT_NO_FATAL_FAILURE(seat->Swap(killed));
        const size_t before = load.ids();
        EXPECT_TRUE(Eventually(kPatience, [&] { return load.ids() > before + 100; }));
      }
      ExpectSound();
    }
    load.Stop();
    EXPECT_TRUE(load.twice().empty()) << load.twice().size() << ", such as " << load.twice()[0];
  }

  // Checks the cluster. A killed server's session may still exist for a while, which is not a
  // fault.
  void ExpectSound() const {
    for (const Build build : {Build::kThis, Build::kOther}) {
      Finished audit;
      EXPECT_TRUE(Eventually(kPatience,
                             [&] {
                               audit = Firn(build, {"audit"});
                               return audit.exit_code == 0;
                             }))
          << audit.out << audit.err;
    }
  }

  TempDir dir_;
  std::string registry_ = "dir://" + (dir_ / "registry");
};

TEST_P(VersionDrill, OnADirectory) { Run(); }

TEST_P(VersionDrill, OnZooKeeper) {
  if (std::getenv("FIRN_OTHER_BIN") == nullptr) GTEST_SKIP() << "there is no other build";
  const auto zookeeper = ZooKeeper::Start();
  ASSERT_TRUE(zookeeper.ok()) << zookeeper.status();
  registry_ = "zk://" + (*zookeeper)->hosts() + "/firn/versions";
  Run();
}

using Named = testing::TestParamInfo<VersionDrill::ParamType>;

INSTANTIATE_TEST_SUITE_P(MadeBy, VersionDrill,
                         testing::Combine(testing::Values(Build::kThis, Build::kOther),
                                          testing::Values(size_t{1}, size_t{4})),
                         [](const Named& named) {
                           std::string name =
                               std::get<0>(named.param) == Build::kThis ? "This" : "TheOther";
                           if (std::get<1>(named.param) > 1) name += "WithSeveralMachineIds";
                           return name;
                         });

}  // namespace
}  // namespace firn
