#include "tools/firn/drill/drill_scenarios.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cat.h"

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
  return NotFound(
      "this drill needs Firn's source tree, which starts the cluster: name it with --source. "
      "`firn drill watch` needs none");
}

// Where the programs are: beside this one, if it was built with them.
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
      return NotFound(program + " is not built: in the source tree, tools/build release " +
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
      {"kill-server", "a server is killed, and started again"},
      {"restart-server", "a server is stopped as an operator does it, and started again"},
      {"rolling-restart", "the same with every server, one after another"},
      {"pause-server", "a server stands still beyond its session, and goes on"},
      {"kill-zookeeper-leader", "the ensemble's leader is killed, and started again"},
      {"stop-zookeeper", "the whole ensemble is killed, and started again"},
      {"wipe-zookeeper", "the ensemble loses all data; firn restore puts it right"},
      {"clone-state", "a server starts with a copy of another one's state folder"},
      {"clock-back", "a server's clock steps an hour back; it is killed and started again"},
      {"clock-forward", "the same an hour ahead"},
      {"exhaust", "a fifth server where there are four machine ids; then one is given back"},
      {"tls-rotation", "certificates are renewed three times, their authority once"},
      {"away", "databases stopped for long, and what stands in for them", false},
      {"change", "segment tags change their store and every other field under load", false},
      {"client", "servers are killed, paused, drained, cut off, slow under one client", false},
      {"crowd", "17 claimants, 16 machine ids", false},
      {"disk", "full, read-only, standing still", false},
      {"ensemble", "ZooKeeper's leader killed; the whole ensemble killed and back", false},
      {"failover", "a database's replica is promoted behind its primary", false},
      {"holder", "paused beyond the session; state folder or registry copied", false},
      {"locked_ensemble", "ZooKeeper through stunnel, which ends; its leader killed", false},
      {"loss", "ZooKeeper put back to a backup, or wiped, under live holders", false},
      {"network", "answers to a renewal and a claim lost; a session expired", false},
      {"outage", "each store away in turn, ZooKeeper too, under steady load", false},
      {"restart", "killed and started again, with a clock that is wrong, too", false},
      {"segment", "programs that share a segment tag, killed at random", false},
      {"server", "whole servers restarted and killed in turn", false},
      {"store", "every kind of store, killed at random under load", false},
      {"storm", "64 claims at once", false},
      {"version", "two builds of Firn in one cluster; without another one this beside itself",
       false},
      {"wipe", "ensemble wiped under whole servers, and a slow operator", false}};
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
