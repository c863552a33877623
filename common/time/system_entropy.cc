#include <cerrno>

#include <sys/random.h>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/cycles.h"
#include "common/time/entropy.h"

namespace firn {
namespace {

// Spreads every bit of `value` over all of them (SplitMix64's last step).
uint64_t Spread(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// Two copies of a running machine share the kernel's entropy pool until it is reseeded; mixing in
// the time of the call makes equal numbers unlikely.
class KernelEntropy final : public Entropy {
 public:
  uint64_t Next() override {
    uint64_t bits = 0;
    while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
      if (errno != EINTR) Die("the kernel gives no random numbers");
    }
    const auto boot_us = static_cast<uint64_t>(SystemClock().BootMicros().count());
    return bits ^ Spread(CycleCount() ^ Spread(boot_us));
  }
};

}  // namespace

Entropy& SystemEntropy() {
  static KernelEntropy entropy;
  return entropy;
}

}  // namespace firn
