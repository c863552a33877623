// Two builds of Firn in one cluster, under load: each makes a cluster that the other joins, and
// each goes on from what the other has left, stopped or killed. The other build's programs are in
// the folder that FIRN_OTHER_BIN names; without it this build stands in for them. tools/versions
// builds older commits for it.

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "common/time/clock.h"
#include "tests/server/program/running_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Json = nlohmann::json;

constexpr Milliseconds kPatience{60'000};
// Between a caller's calls: each is a connection, and their ports are not used again at once.
constexpr Milliseconds kPause{2};

enum class Build { kThis, kOther };

Build Opposite(Build build) { return build == Build::kThis ? Build::kOther : Build::kThis; }

std::string ProgramOf(Build build, const std::string& name) {
  const char* const folder = std::getenv("FIRN_OTHER_BIN");
  if (build == Build::kThis || folder == nullptr) return BuiltProgram(name);
  return std::string(folder) + "/" + name;
}

// A server's place, state folder and ports, in which now one build sits, now the other.
class Seat {
 public:
  Seat(const std::string& folder, const std::string& registry, Build build)
      : program_(folder + ".program"), build_(build) {
    Point();
    server_.emplace(folder,
                    std::vector<std::string>{"--registry=" + registry, "--drain_notice_ms=0"},
                    std::vector<std::string>{"sh", "-c", "shift; exec \"$0\" \"$@\"", program_});
  }

  RunningServer& server() { return *server_; }

  Json Status() const { return Json::parse(server_->Admin("/v1/status").body, nullptr, false); }

  // The other build goes on from what this one leaves.
  void Swap(bool killed) {
    if (killed) {
      server_->Kill();
    } else {
      server_->process().Signal(SIGTERM);
      ASSERT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
    }
    build_ = Opposite(build_);
    Point();
    server_->StartAgain();
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

 private:
  void Point() const {
    std::filesystem::remove(program_);
    std::filesystem::create_symlink(ProgramOf(build_, "firn-server"), program_);
  }

  const std::string program_;
  Build build_;
  std::optional<RunningServer> server_;
};

// Callers, one after another's answer each, and every id that they got.
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
  // Of one kind of ids each: numbers of the segment tag are no snowflakes.
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

class VersionDrill : public testing::TestWithParam<Build> {
 protected:
  Finished Firn(Build build, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), ProgramOf(build, "firn"));
    arguments.push_back("--registry=" + registry_);
    return RunToEnd(arguments);
  }

  void Run() {
    const Build maker = GetParam();
    Finished done = Firn(maker, {"init", "--brand-new", "--workers=4"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    done = Firn(maker, {"tags", "create", "number", "strategy=segment"});
    ASSERT_EQ(done.exit_code, 0) << done.err;
    Seat one(dir_ / "one", registry_, maker), two(dir_ / "two", registry_, Opposite(maker));
    for (Seat* seat : {&one, &two}) {
      ASSERT_TRUE(seat->server().BecomesReady()) << seat->server().log();
    }
    Load load({&one, &two}, {"/genid", "/api/segment/get/number"});
    for (const bool killed : {false, true}) {
      for (Seat* seat : {&one, &two}) ASSERT_NO_FATAL_FAILURE(SwapUnder(load, *seat, killed));
      ExpectSound();
    }
    load.Stop();
    EXPECT_TRUE(load.twice().empty()) << load.twice().size() << ", such as " << load.twice()[0];
  }

  // A state folder of either build keeps its machine id under the other.
  void SwapUnder(const Load& load, Seat& seat, bool killed) {
    const Json machine = seat.Status().at("machine");
    seat.Swap(killed);
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_EQ(seat.Status().at("machine"), machine) << seat.server().log();
    const size_t before = load.ids();
    EXPECT_TRUE(Eventually(kPatience, [&] { return load.ids() > before + 100; }));
  }

  // A killed server's session may still stand for a while, which is no fault.
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

INSTANTIATE_TEST_SUITE_P(MadeBy, VersionDrill, testing::Values(Build::kThis, Build::kOther),
                         [](const testing::TestParamInfo<Build>& made_by) {
                           return made_by.param == Build::kThis ? "This" : "TheOther";
                         });

}  // namespace
}  // namespace firn
