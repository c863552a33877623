#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "common/id_pace.h"
#include "common/units.h"

namespace firn {

// The one time line that a process issues ids on: it starts at the wall clock or at the base of a
// claim, whichever is later, is carried by the boot clock when the wall clock misbehaves, and never
// goes back. The rules stand in common/id_pace.h.
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
  // Last() is about to be as new as `now`. Never blocks.
  bool TryAdvance(Now now);

  // From now on the time is at least `base`.
  void RaiseTo(WallMs base, Now now);

  // What the registry's own clock showed at `now`. Only heard when the options say that it has one.
  void NoteRegistryClock(WallMs registry, Now now);

  // The latest time reached; before any reading, the beginning of time. Reads one word.
  WallMs Last() const { return WallMs(last_ms_.load(std::memory_order_acquire)); }

  // Policy `strict` only: the wall clock is behind, so nothing may be issued now.
  bool Stopped() const { return stopped_.load(std::memory_order_acquire); }

  // How far the wall clock was behind the id clock at the last reading. Reads one word.
  Milliseconds Skew() const { return Milliseconds(skew_ms_.load(std::memory_order_relaxed)); }

  IdClockReport Report() const;

 private:
  WallMs Steer(Now now, std::unique_lock<std::mutex> lock);
  void Publish();

  mutable std::mutex mutex_;
  IdPace pace_;                       // under mutex_
  std::atomic<int64_t> last_ms_{0};   // written under mutex_
  std::atomic<int64_t> skew_ms_{0};   // written under mutex_
  std::atomic<bool> stopped_{false};  // written under mutex_
  const AlarmHook alarm_;
};

}  // namespace firn
