#pragma once

#include <atomic>
#include <string_view>

#include "common/time/civil_time.h"
#include "common/time/clock.h"

namespace firn {

inline constexpr Milliseconds kMs{1}, kAnHour{3'600'000}, kADay = 24 * kAnHour;

inline WallMs At(std::string_view rfc3339) { return ParseRfc3339(rfc3339).value(); }

// A clock that advances only when a test moves it. Thread-safe.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(WallMs wall, BootMs boot = BootMs(1'000'000))
      : wall_ms_(wall.ms()), boot_ms_(boot.ms()) {}

  WallMs Wall() const override { return WallMs(wall_ms_.load()); }
  BootMs Boot() const override { return BootMs(boot_ms_.load()); }

  // Lets time pass: both clocks move.
  void Advance(Milliseconds d) {
    boot_ms_ += d.count();
    wall_ms_ += d.count();
  }

  // Sets the wall clock; the boot clock does not change.
  void StepWall(Milliseconds d) { wall_ms_ += d.count(); }

 private:
  std::atomic<int64_t> wall_ms_;
  std::atomic<int64_t> boot_ms_;
};

}  // namespace firn
