#include "tests/support/database/sql_server.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>

namespace firn {
namespace {

// Returns /proc's line about a process: "4711 (its name) S parent ..."; empty once it has ended.
struct Stat {
  char state = 'X';
  pid_t parent = 0;
};

Stat StatOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  Stat stat;
  if (name_end == line.npos) return stat;
  std::istringstream(line.substr(name_end + 1)) >> stat.state >> stat.parent;
  return stat;
}

bool HasEnded(pid_t pid) {
  const char state = StatOf(pid).state;
  return state == 'X' || state == 'Z';
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && StatOf(pid).parent == parent) children.push_back(pid);
  }
  return children;
}

}  // namespace

void SqlServer::Kill() {
  if (!process_) return;
  const pid_t parent = process_->pid();
  process_->Signal(SIGSTOP);  // so that it forks no more processes
  Eventually(kPatience, [&] { return StatOf(parent).state == 'T' || HasEnded(parent); });
  const std::vector<pid_t> children = ChildrenOf(parent);
  process_.reset();
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) Eventually(kPatience, [&] { return HasEnded(child); });
}

Status SqlServer::WriteCredentials() const {
  std::ofstream(credentials_file()) << kUser << ":" << kPassword << "\n";
  return chmod(credentials_file().c_str(), 0600) == 0 ? Status()
                                                      : Internal("cannot write credentials");
}

}  // namespace firn
