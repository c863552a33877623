#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "common/base/atomic.h"
#include "common/base/units.h"

namespace firn {

// The registry's clock, extrapolated from its last reading by the boot clock. It is the only time
// on which all servers of a cluster agree. It follows the registry's clock, also backwards, and is
// behind it by at most the duration of the reading. Thread-safe.
class RegistryTime {
 public:
  // Records that an answer read at `boot` contained the registry's time `wall`.
  void Note(WallMs wall, BootMs boot) {
    noted_ms_.store(boot.ms(), std::memory_order_relaxed);
    ahead_ms_.store(wall.ms() - boot.ms(), std::memory_order_relaxed);
  }

  // Returns the registry's time at `boot`; empty before the first reading.
  std::optional<WallMs> At(BootMs boot) const {
    const int64_t ahead = ahead_ms_.load(std::memory_order_relaxed);
    return ahead == kUntold ? std::nullopt : std::optional(WallMs(boot.ms() + ahead));
  }

  // Returns whether the last reading is at most `age` old.
  bool IsFresh(BootMs now, Milliseconds age) const {
    return At(now) && now.ms() - noted_ms_.load(std::memory_order_relaxed) <= age.count();
  }

 private:
  static constexpr int64_t kUntold = std::numeric_limits<int64_t>::min();

  // Each value is meaningful alone, so relaxed order is sufficient.
  Atomic<int64_t> ahead_ms_{kUntold};
  Atomic<int64_t> noted_ms_{0};
};

}  // namespace firn
