#include <ctime>

#include "common/clock.h"

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
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace firn
