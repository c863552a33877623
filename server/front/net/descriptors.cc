#include "server/front/net/descriptors.h"

#include <algorithm>
#include <atomic>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace firn::front {
namespace {

// Allowance for descriptors that are not connections; some may have higher numbers.
constexpr rlim_t kOwnDescriptors = 128;

std::atomic<int> highest_accepted{0};

int HighestWith(int accepted) {
  int before = highest_accepted.load(std::memory_order_relaxed);
  while (before < accepted && !highest_accepted.compare_exchange_weak(before, accepted)) {
  }
  return std::max(before, accepted);
}

}  // namespace

bool CanOpen(int open, int wanted) {
  for (int from = 0; wanted > 0; --wanted) {
    const int free = fcntl(open, F_DUPFD_CLOEXEC, from);
    if (free < 0) return false;
    close(free);
    from = free + 1;
  }
  return true;
}

bool LeavesSpare(int accepted, int spare) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t used = static_cast<rlim_t>(HighestWith(accepted)) + kOwnDescriptors;
  return used + static_cast<rlim_t>(spare) < limit.rlim_cur || CanOpen(accepted, spare);
}

}  // namespace firn::front
