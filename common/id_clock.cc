#include "common/id_clock.h"

namespace firn {

WallMs IdClock::Advance(Now now) { return Steer(now, std::unique_lock(mutex_)); }

bool IdClock::TryAdvance(Now now) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Steer(now, std::move(lock));
  return true;
}

WallMs IdClock::Steer(Now now, std::unique_lock<std::mutex> lock) {
  const WallMs time = pace_.Advance(now);
  Publish();
  const bool alarm = alarm_ != nullptr && pace_.AlarmIsDue();
  const IdClockReport report = alarm ? pace_.report() : IdClockReport{};
  lock.unlock();
  if (alarm) alarm_(report);
  return time;
}

void IdClock::RaiseTo(WallMs base, Now now) {
  const std::lock_guard lock(mutex_);
  pace_.Advance(now);
  pace_.RaiseTo(base);
  Publish();
}

void IdClock::Publish() {
  skew_ms_.store(pace_.skew().count(), std::memory_order_relaxed);
  stopped_.store(pace_.stopped(), std::memory_order_release);
  last_ms_.store(pace_.time().ms(), std::memory_order_release);
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
