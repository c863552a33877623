#include <algorithm>
#include <ctime>

#include <sys/stat.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "common/time/clock.h"
#include "common/time/cycles.h"

namespace firn {
namespace {

int64_t ReadMs(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return int64_t{t.tv_sec} * 1000 + t.tv_nsec / 1'000'000;
}

class MachineClock final : public Clock {
 public:
  WallMs Wall() const override { return WallMs(ReadMs(CLOCK_REALTIME)); }
  BootMs Boot() const override { return BootMs(ReadMs(CLOCK_BOOTTIME)); }

  std::chrono::microseconds BootMicros() const override {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return std::chrono::microseconds(int64_t{t.tv_sec} * 1'000'000 + t.tv_nsec / 1000);
  }

  std::chrono::microseconds ToNextWallMs() const override {
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    return std::chrono::microseconds(1000 - t.tv_nsec % 1'000'000 / 1000);
  }
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock clock;
  return clock;
}

uint64_t TimeNamespace() {
  struct stat info {};
  if (stat("/proc/self/ns/time", &info) == 0) return info.st_ino;
  return stat("/proc/self/ns", &info) == 0 ? 1 : 0;
}

void SleepFor(std::chrono::microseconds duration) {
  const int64_t us = std::max<int64_t>(duration.count(), 0);
  const timespec t{us / 1'000'000, us % 1'000'000 * 1000};
  nanosleep(&t, nullptr);  // a signal may end it early: every caller checks its condition again
}

bool CyclesAreSteady() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kPowerLeaf = 0x80000007, kInvariantTsc = 1U << 8;
  return __get_cpuid(kPowerLeaf, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0;
#else
  return false;
#endif
}

}  // namespace firn
