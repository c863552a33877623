#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "common/base/atomic.h"
#include "common/base/units.h"

namespace firn {

// The registry's clock, extrapolated by the boot clock since its last reading: the only time that
// all servers of a cluster agree on. It follows that clock, also backwards, and is behind it by no
// more than the duration of the reading. Thread-safe.
class RegistryTime {
 public:
  // The registry showed `wall` in an answer that was read at `boot`.
  void Note(WallMs wall, BootMs boot) {
    noted_ms_.store(boot.ms(), std::memory_order_relaxed);
    ahead_ms_.store(wall.ms() - boot.ms(), std::memory_order_relaxed);
  }

  // Empty before the first reading.
  std::optional<WallMs> At(BootMs boot) const {
    const int64_t ahead = ahead_ms_.load(std::memory_order_relaxed);
    return ahead == kUntold ? std::nullopt : std::optional(WallMs(boot.ms() + ahead));
  }

  // Whether the last reading is at most `age` old.
  bool IsFresh(BootMs now, Milliseconds age) const {
    return At(now) && now.ms() - noted_ms_.load(std::memory_order_relaxed) <= age.count();
  }

 private:
  static constexpr int64_t kUntold = std::numeric_limits<int64_t>::min();

  // Each is consistent by itself, so neither needs the other's order.
  Atomic<int64_t> ahead_ms_{kUntold};
  Atomic<int64_t> noted_ms_{0};
};

}  // namespace firn
