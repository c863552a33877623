#include "common/id/id_clock.h"

namespace firn {

WallMs IdClock::Advance(Now now) {
  return Steer(now, std::unique_lock(mutex_), [](WallMs) {});
}

void IdClock::Publish() {
  skew_ms_.store(pace_.skew().count(), std::memory_order_relaxed);
  stopped_.store(pace_.stopped(), std::memory_order_relaxed);
  last_ms_.store(pace_.time().ms(), std::memory_order_relaxed);
}

void IdClock::NoteRegistryClock(WallMs registry, Now now) {
  const std::lock_guard lock(mutex_);
  pace_.NoteRegistryClock(registry, now);
}

IdClockReport IdClock::Report() const {
  const std::lock_guard lock(mutex_);
  return pace_.report();
}

}  // namespace firn
