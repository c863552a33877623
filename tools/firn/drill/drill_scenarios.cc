#include "tools/firn/drill/drill_scenarios.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

fs::path ProgramFolder() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

bool IsSource(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "tools/drill", ignored) && fs::exists(folder / "tests/drill", ignored);
}

Result<fs::path> SourceTree(const std::string& named) {
  if (!named.empty()) {
    if (IsSource(named)) return fs::absolute(named);
    return NotFound(named + " is not Firn's source tree");
  }
  std::error_code ignored;
  for (fs::path folder : {fs::current_path(ignored), ProgramFolder()}) {
    for (; folder.has_relative_path(); folder = folder.parent_path()) {
      if (IsSource(folder)) return folder;
    }
  }
  return NotFound("this drill requires Firn's source tree; name it with --source. `" +
                  PrintCommand(PrintedCommand::kDrillWatch) + "` works without it");
}

// Returns the folder of the program: that of this program, or of a release build.
fs::path BuiltIn(const fs::path& source, const std::string& program) {
  std::error_code ignored;
  for (const fs::path& bin : {ProgramFolder(), source / "build/release/bin"}) {
    if (fs::exists(bin / program, ignored)) return bin;
  }
  return {};
}

Result<std::vector<std::string>> CommandOf(const DrillScenario& scenario, const DrillRun& how) {
  FIRN_ASSIGN(const fs::path source, SourceTree(how.source));
  const std::string name(scenario.name);
  if (!scenario.whole) {
    const std::string program = name + "_drill_test";
    const fs::path bin = BuiltIn(source, program);
    if (bin.empty()) {
      return NotFound(program + " is not built; run in the source tree: tools/build release " +
                      program);
    }
    return std::vector<std::string>{bin / program, "--gtest_brief=1"};
  }
  std::vector<std::string> command{source / "tools/drill", name};
  const fs::path bin = BuiltIn(source, "firn-server");
  if (!bin.empty()) command.push_back("--bin=" + bin.string());
  if (!how.logs.empty()) command.push_back("--logs=" + fs::absolute(how.logs).string());
  if (how.rate > 0) command.push_back(Cat("--rate=", how.rate));
  if (how.away_s > 0) command.push_back(Cat("--away=", how.away_s));
  return command;
}

}  // namespace

const std::vector<DrillScenario>& DrillScenarios() {
  static const std::vector<DrillScenario> scenarios{
      {"kill-server", "kills a server and starts it again"},
      {"restart-server", "stops a server as an operator does, and starts it again"},
      {"rolling-restart", "restarts every server, one after another"},
      {"pause-server", "pauses a server until its session has expired, and resumes it"},
      {"kill-zookeeper-leader", "kills the ensemble's leader and starts it again"},
      {"stop-zookeeper", "kills the whole ensemble and starts it again"},
      {"wipe-zookeeper", "deletes all data of the ensemble; firn restore repairs it"},
      {"clone-state", "starts a server with a copy of another server's state folder"},
      {"clock-back", "sets a server's clock an hour back, kills it and starts it again"},
      {"clock-forward", "sets a server's clock an hour ahead, kills it and starts it again"},
      {"exhaust", "starts a fifth server for four machine ids, then releases one"},
      {"tls-rotation", "renews the certificates three times, their authority once"},
      {"wrong-order", "operators repair losses half, twice, or with the wrong backup"},
      {"away", "databases stopped for a long time, while the ledger provides ranges", false},
      {"change", "segment tags change their store and every other field under load", false},
      {"client", "servers killed, paused, drained, cut off or slow under one client", false},
      {"crowd", "17 claimants, 16 machine ids", false},
      {"disk", "the disk is full, read-only or hanging", false},
      {"ensemble", "ZooKeeper's leader killed; the whole ensemble killed and restarted", false},
      {"failover", "a database's replica is promoted behind its primary", false},
      {"holder", "a holder paused beyond its session; state folder or registry copied", false},
      {"lease", "programs under leased machine ids; servers and ZooKeeper killed or paused", false},
      {"locked_ensemble", "ZooKeeper through stunnel, which ends; its leader killed", false},
      {"loss", "ZooKeeper reset to a backup, or wiped, under live holders", false},
      {"network", "lost answers to a renewal and a claim; an expired session", false},
      {"outage", "each store unreachable in turn, ZooKeeper too, under steady load", false},
      {"printed_command", "the restore command that a server prints, pasted after a loss", false},
      {"restart", "servers killed and started again, also with a wrong clock", false},
      {"segment", "programs that share a segment tag, killed at random", false},
      {"server", "whole servers restarted and killed in turn", false},
      {"store", "every kind of store, killed at random under load", false},
      {"storm", "64 claims at once", false},
      {"version", "two builds of Firn in one cluster; by default, this build beside itself", false},
      {"wipe", "the ensemble wiped under whole servers, with a slow operator", false}};
  return scenarios;
}

Result<int> RunDrill(const DrillScenario& scenario, const DrillRun& how) {
  FIRN_ASSIGN(const std::vector<std::string> command, CommandOf(scenario, how));
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (how.quiet) posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Unavailable(Cat(command[0], ": ", std::strerror(failed)));
  int ended = 0;
  while (waitpid(child, &ended, 0) < 0) {
    if (errno != EINTR) return Unavailable(Cat(command[0], ": ", std::strerror(errno)));
  }
  return WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
}

}  // namespace firn
