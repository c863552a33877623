#include "server/host_limits.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include <boost/system/system_error.hpp>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/log/log.h"

namespace firn {
namespace {

constexpr rlim_t kOwnDescriptors = 128;
// Required without connections: files, sockets and event queues of the threads.
constexpr rlim_t kLeastDescriptors = 48;

std::terminate_handler usual_end = nullptr;

bool IsOfLimits(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  int code = 0;
  if (const auto* own = dynamic_cast<const std::system_error*>(&error)) code = own->code().value();
  if (const auto* other = dynamic_cast<const boost::system::system_error*>(&error)) {
    code = other->code().value();
  }
  return code == EMFILE || code == ENFILE || code == ENOMEM || code == EAGAIN;
}

// Must need little memory and no descriptors, because the process may have run out of them.
[[noreturn]] void End() {
  if (const std::exception_ptr current = std::current_exception()) {
    try {
      std::rethrow_exception(current);
    } catch (const std::exception& error) {
      if (IsOfLimits(error)) {
        std::fprintf(stderr, "firn-server: the host denies this process resources: %s; %s\n",
                     error.what(), LimitsInForce().c_str());
        _exit(1);
      }
    } catch (...) {
    }
  }
  usual_end();
  std::abort();
}

}  // namespace

Status AllowDescriptors(const front::Limits& limits) {
  rlimit allowed{};
  getrlimit(RLIMIT_NOFILE, &allowed);
  const rlim_t wanted =
      limits.connections_max + static_cast<rlim_t>(limits.spare_descriptors) + kOwnDescriptors;
  if (allowed.rlim_cur >= wanted) return {};
  allowed.rlim_cur = std::min(allowed.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &allowed);
  if (allowed.rlim_cur < kLeastDescriptors) {
    return Invalid(Cat("this process may have ", allowed.rlim_cur,
                       " open files (ulimit -n); raise the limit to ", kLeastDescriptors,
                       " plus one for each connection"));
  }
  if (allowed.rlim_cur < wanted) {
    LogWarning("host_limit").With("descriptors", allowed.rlim_cur).With("wanted", wanted)
        << "this process may have " << allowed.rlim_cur
        << " open files (ulimit -n), too few for --connections_max=" << limits.connections_max;
  }
  return {};
}

// By default the threshold rises to the largest block freed, and memory below other blocks in an
// arena is never returned: 600 MB long after many connections were closed.
void ReturnFreedMemory() {
  constexpr int kOwnMapping = 32 * 1024;
  mallopt(M_MMAP_THRESHOLD, kOwnMapping);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
}

// malloc_trim takes milliseconds, during which threads that allocate wait.
void FreedInBulk::Observe(size_t held, BootMs now) {
  constexpr size_t kBulk = 4 * 1024 * 1024;
  constexpr Milliseconds kEvery{2'000};
  most_ = std::max(most_, held);
  if (most_ - held < kBulk || now < not_before_) return;
  malloc_trim(0);
  most_ = held;
  not_before_ = now + kEvery;
}

std::string LimitsInForce() {
  struct Limit {
    decltype(RLIMIT_AS) which;
    const char* name;
    const char* option;
  };
  constexpr Limit kLimits[] = {{RLIMIT_AS, "address space", "-v"},
                               {RLIMIT_DATA, "data segment", "-d"},
                               {RLIMIT_NOFILE, "open files", "-n"},
                               {RLIMIT_NPROC, "processes and threads", "-u"},
                               {RLIMIT_STACK, "stack of a thread", "-s"}};
  std::string text;
  for (const Limit& limit : kLimits) {
    rlimit now{};
    getrlimit(limit.which, &now);
    if (now.rlim_cur == RLIM_INFINITY) continue;
    const bool in_kib = limit.which != RLIMIT_NOFILE && limit.which != RLIMIT_NPROC;
    text += Cat(text.empty() ? "" : ", ", limit.name, " ", now.rlim_cur / (in_kib ? 1024 : 1),
                in_kib ? " KiB" : "", " (ulimit ", limit.option, ")");
  }
  return text.empty()
             ? "no limit of its own is set: the host or its cgroup has no more"
             : "its limits: " + text + "; its cgroup may allow less (pids.max, memory.max)";
}

void ExplainLimitsAtTheEnd() { usual_end = std::set_terminate(End); }

void RequireSpareMemory() {
  constexpr size_t kSpare = 32 * 1024 * 1024;
  operator delete(operator new(kSpare));  // mapped, but not touched
}

}  // namespace firn
