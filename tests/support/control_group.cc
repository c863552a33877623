#include "tests/support/control_group.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <unistd.h>

#include "tests/support/process.h"

namespace firn {

namespace fs = std::filesystem;

ControlGroup::ControlGroup(const std::string& controller, const std::string& name,
                           const std::string& old_name, int64_t limit) {
  MakeIn("/sys/fs/cgroup", name, limit);
  if (!ok_) MakeIn("/sys/fs/cgroup/" + controller, old_name, limit);
}

std::vector<std::string> ControlGroup::wrapper() const {
  return {"sh", "-c", "echo $$ >\"$0\" && exec \"$@\"", folder_ + "/cgroup.procs"};
}

int64_t ControlGroup::OomKills() const {
  for (const char* const name : {"/memory.events", "/memory.oom_control"}) {
    std::ifstream file(folder_ + name);
    std::string key;
    for (int64_t value = 0; file >> key >> value;) {
      if (key == "oom_kill") return value;
    }
  }
  return -1;
}

void ControlGroup::MakeIn(const std::string& parent, const std::string& name, int64_t limit) {
  Remove();
  folder_ = parent + "/firn-test-" + std::to_string(getpid());
  std::error_code none;
  if (!fs::create_directory(folder_, none) || !fs::exists(folder_ + "/" + name, none)) return;
  std::ofstream(folder_ + "/" + name) << limit;
  int64_t now = 0;
  ok_ = (std::ifstream(folder_ + "/" + name) >> now) && now == limit;
}

// A group stays in use for a moment after its last process has ended.
void ControlGroup::Remove() const {
  if (folder_.empty()) return;
  Eventually(kPatience, [&] { return rmdir(folder_.c_str()) == 0 || errno == ENOENT; });
}

}  // namespace firn
