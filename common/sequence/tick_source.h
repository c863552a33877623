#pragma once

#include <chrono>
#include <cstdint>

#include "common/base/atomic.h"
#include "common/id/id_clock.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "common/time/cycles.h"

namespace firn {

// Gives issuing threads the id clock's current tick, for one layout, in a few nanoseconds.
//
// Reuses a reading of the machine's clocks until, by the processor's cycle counter, a fraction of a
// millisecond may have passed. Without a steady counter, every call reads the clocks. So the tick
// lags the id clock by less than 1 ms plus one preemption of the thread. The tick never falls,
// except by Restart. Thread-safe, lock-free.
class TickSource {
 public:
  // `id_clock` and `clock` must outlive this.
  TickSource(const Layout& layout, IdClock& id_clock, const Clock& clock,
             bool use_cycles = CyclesAreSteady());

  // Returns the id clock's tick, or kStopped while the id clock is stopped (policy strict).
  Tick Current() {
    const uint64_t age = CycleCount() - read_at_.load(std::memory_order_acquire);
    if (age < fresh_cycles_) return Tick(tick_.load(std::memory_order_relaxed));
    return Refresh();
  }
  static constexpr Tick kStopped{INT64_MIN};

  // Like Current, but always reads the clocks. For a call that would otherwise wait. While another
  // thread reads the clocks, the result may be ahead of a later result of Current().
  Tick Refresh();

  // Raises the current tick to at least `first`, or at least the tick of `time`.
  void RaiseTo(Tick first) { RaiseTo(layout_.StartOf(first)); }
  void RaiseTo(WallMs time);

  // Sets the id clock and this object to `time` at `now`. Allowed only while no id has been issued.
  // A thread that read the tick before may still use the old tick. That is harmless, because every
  // id is checked against a claim's end.
  void Restart(WallMs time, Now now);

  // Returns the estimated time until the id clock reaches `tick`, for retries. Never zero.
  std::chrono::microseconds Until(Tick tick) const;

  const IdClock& id_clock() const { return id_clock_; }
  const Layout& layout() const { return layout_; }

 private:
  void Show(WallMs time) { tick_.store(layout_.TickAt(time).count(), std::memory_order_relaxed); }

  const Layout layout_;
  IdClock& id_clock_;
  const Clock& clock_;
  const uint64_t fresh_cycles_;

  // Every call reads both members. They are written together, at most a few thousand times per
  // second. The tick is written only under the id clock's lock, so that no thread overwrites it
  // with an older one.
  alignas(64) Atomic<uint64_t> read_at_{0};  // cycle count before the clocks were read
  Atomic<int64_t> tick_{INT64_MIN};
};

}  // namespace firn
