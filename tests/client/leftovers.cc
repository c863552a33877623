#include "tests/client/leftovers.h"

#include <filesystem>
#include <system_error>

#include "common/base/cat.h"
#include "tests/client/scheduling.h"
#include "tests/support/process.h"

namespace firn {

size_t Leftovers::CountThreads() { return Threads().size(); }

size_t Leftovers::CountHandles() {
  size_t handles = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed_meanwhile;
    const std::string what = std::filesystem::read_symlink(entry.path(), closed_meanwhile);
    handles += what.starts_with("socket:") || what.starts_with("anon_inode:") ? 1U : 0U;
  }
  return handles;
}

std::string Leftovers::Faults() const {
  std::string faults;
  if (!Eventually(kPatience, [this] { return CountThreads() <= threads_; })) {
    faults += Cat("of ", CountThreads(), " threads there were ", threads_, " before the client\n");
  }
  if (!Eventually(kPatience, [this] { return CountHandles() <= handles_; })) {
    faults += Cat("of ", CountHandles(), " sockets there were ", handles_, " before the client\n");
  }
  return faults;
}

}  // namespace firn
