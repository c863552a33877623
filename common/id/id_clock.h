#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "common/base/atomic.h"
#include "common/base/units.h"
#include "common/id/id_pace.h"

namespace firn {

// The clock that a process uses for the time in its ids. It starts at the wall clock or at the base
// of a claim, whichever is later, follows the boot clock while the wall clock is wrong, and never
// falls once an id has been issued. common/id/id_pace.h has the rules.
//
// It reads no clock: callers pass readings of both clocks, so that a simulation can control them.
// Thread-safe; it ignores a reading that is older than an earlier one.
//
// Sharp edge: a process must have only one IdClock, shared by the claim's keeper and the issuers.
class IdClock {
 public:
  // Called at most once a minute (of the boot clock) while the wall clock is off by more than
  // `options.alarm`, in the thread that called Advance, without a lock. Must not throw.
  using AlarmHook = std::function<void(const IdClockReport&)>;

  explicit IdClock(IdClockOptions options = {}, AlarmHook alarm = nullptr)
      : pace_(options), alarm_(std::move(alarm)) {}

  // Updates the clock by a reading of both clocks, and returns its time.
  WallMs Advance(Now now);

  // As Advance, unless another thread is updating the clock: then it returns false and does
  // nothing, and Last() will soon be as new as `now`. Never blocks, unless `seen` does.
  //
  // Here and below, `seen` receives the new time before another thread can change or read it. So a
  // value that it stores is never older than Last(), nor from before a Restart.
  template <typename Seen>
  bool TryAdvance(Now now, Seen seen) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    Steer(now, std::move(lock), seen);
    return true;
  }
  bool TryAdvance(Now now) {
    return TryAdvance(now, [](WallMs) {});
  }

  // Raises the time to at least `base`.
  template <typename Seen>
  void RaiseTo(WallMs base, Now now, Seen seen) {
    const std::lock_guard lock(mutex_);
    pace_.Advance(now);
    pace_.RaiseTo(base);
    seen(pace_.time());
    Publish();
  }
  void RaiseTo(WallMs base, Now now) {
    RaiseTo(base, now, [](WallMs) {});
  }

  // Sets the time at `now` to `time`, even back. Only before the first id was issued: it discards a
  // first reading that preceded a correction of the machine's clock.
  template <typename Seen>
  void Restart(WallMs time, Now now, Seen seen) {
    const std::lock_guard lock(mutex_);
    pace_.Restart(time, now);
    seen(pace_.time());
    Publish();
  }

  // Records the registry's clock at `now`.
  void NoteRegistryClock(WallMs registry, Now now);

  // Returns the latest time; before any reading, the lowest time. Reads one word.
  WallMs Last() const { return WallMs(last_ms_.load(std::memory_order_relaxed)); }

  // Returns whether no id may be issued now (IdPace::stopped).
  bool Stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Returns how far the wall clock was behind the id clock at the last reading. Reads one word.
  Milliseconds Skew() const { return Milliseconds(skew_ms_.load(std::memory_order_relaxed)); }

  IdClockReport Report() const;

 private:
  template <typename Seen>
  WallMs Steer(Now now, std::unique_lock<Mutex> lock, Seen seen) {
    const WallMs time = pace_.Advance(now);
    seen(time);
    Publish();
    const bool alarm = alarm_ != nullptr && pace_.AlarmIsDue();
    const IdClockReport report = alarm ? pace_.report() : IdClockReport{};
    lock.unlock();
    if (alarm) alarm_(report);
    return time;
  }
  void Publish();

  mutable Mutex mutex_;
  IdPace pace_;  // under mutex_
  // Written under mutex_. Each is complete by itself, so they need no memory order: reading an old
  // value is like reading a moment earlier.
  Atomic<int64_t> last_ms_{0};
  Atomic<int64_t> skew_ms_{0};
  Atomic<bool> stopped_{false};
  const AlarmHook alarm_;
};

}  // namespace firn
