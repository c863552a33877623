#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "common/base/atomic.h"
#include "common/base/units.h"
#include "common/id/id_pace.h"

namespace firn {

// The one time line that a process issues ids on: it starts at the wall clock or at the base of a
// claim, whichever is later, is carried by the boot clock when the wall clock misbehaves, and never
// goes back once an id was given out under it. The rules stand in common/id/id_pace.h.
//
// It reads no clock: whoever needs the time hands in a reading of both clocks, so that a simulation
// can drive it. Thread-safe; a reading that is older than one already seen changes nothing.
//
// Sharp edge: a process has one IdClock, shared by the keeper of its claim and those who issue.
class IdClock {
 public:
  // Told at most once a minute (of the boot clock) while the wall clock is off by more than
  // `options.alarm`, in the thread that steered, with no lock held. Must not throw.
  using AlarmHook = std::function<void(const IdClockReport&)>;

  explicit IdClock(IdClockOptions options = {}, AlarmHook alarm = nullptr)
      : pace_(options), alarm_(std::move(alarm)) {}

  // Steers by a reading of both clocks. The id clock's time now.
  WallMs Advance(Now now);

  // As Advance, unless another thread is steering at this moment: then false, nothing is done, and
  // Last() is about to be as new as `now`. Never blocks, unless `seen` does.
  //
  // Here and below, `seen` is told the time that was reached, before anybody else can move or read
  // it: what it keeps is never older than Last(), nor from before a Restart.
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

  // From now on the time is at least `base`.
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

  // The time at `now` is `time`, whatever was shown before. Only while nothing was given out under
  // it: a first reading from before the machine's clock was set must not be kept.
  template <typename Seen>
  void Restart(WallMs time, Now now, Seen seen) {
    const std::lock_guard lock(mutex_);
    pace_.Restart(time, now);
    seen(pace_.time());
    Publish();
  }

  // What the registry's own clock showed at `now`. Only heard when the options say that it has one.
  void NoteRegistryClock(WallMs registry, Now now);

  // The latest time reached; before any reading, the beginning of time. Reads one word.
  WallMs Last() const { return WallMs(last_ms_.load(std::memory_order_relaxed)); }

  // Policy `strict` only: the wall clock is behind, so nothing may be issued now.
  bool Stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // How far the wall clock was behind the id clock at the last reading. Reads one word.
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
  // Written under mutex_. Each says all by itself, so they need no memory order: who reads an older
  // one has come a moment earlier.
  Atomic<int64_t> last_ms_{0};
  Atomic<int64_t> skew_ms_{0};
  Atomic<bool> stopped_{false};
  const AlarmHook alarm_;
};

}  // namespace firn
