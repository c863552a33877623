#pragma once

#include <chrono>
#include <cstdint>

#include "common/base/atomic.h"
#include "common/id/id_clock.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "common/time/cycles.h"

namespace firn {

// The id clock for issuing threads: reads the current tick of one layout in a few nanoseconds.
//
// A reading of the machine's clocks is reused until the processor's cycle counter shows that a
// fraction of a millisecond may have passed. Without a steady counter, every call reads the clocks.
// So the tick lags the id clock by less than a millisecond plus one interruption of the thread, and
// never goes back, except by Restart. Thread-safe, lock-free.
class TickSource {
 public:
  // `id_clock` and `clock` must outlive this.
  TickSource(const Layout& layout, IdClock& id_clock, const Clock& clock,
             bool use_cycles = CyclesAreSteady());

  // The id clock's tick, or kStopped while the id clock is stopped (policy strict).
  Tick Current() {
    const uint64_t age = CycleCount() - read_at_.load(std::memory_order_acquire);
    if (age < fresh_cycles_) return Tick(tick_.load(std::memory_order_relaxed));
    return Refresh();
  }
  static constexpr Tick kStopped{INT64_MIN};

  // Like Current, from a new reading of the clocks, for a call that would wait otherwise. While
  // another thread reads them, the result may be ahead of what Current() returns a moment later.
  Tick Refresh();

  // Raises the current tick to at least `first`, or to that of `time`.
  void RaiseTo(Tick first) { RaiseTo(layout_.StartOf(first)); }
  void RaiseTo(WallMs time);

  // Sets the id clock, and this, to `time` at `now`. Only while nothing was issued. A thread that
  // had read the tick just before may still use an earlier one. That is harmless, because every id
  // is checked against a claim's end.
  void Restart(WallMs time, Now now);

  // Estimated time until the id clock reaches `tick`, for retries. Never zero.
  std::chrono::microseconds Until(Tick tick) const;

  const IdClock& id_clock() const { return id_clock_; }
  const Layout& layout() const { return layout_; }

 private:
  void Show(WallMs time) { tick_.store(layout_.TickAt(time).count(), std::memory_order_relaxed); }

  const Layout layout_;
  IdClock& id_clock_;
  const Clock& clock_;
  const uint64_t fresh_cycles_;

  // Written together, at most a few thousand times a second; read by every call. The tick is
  // written only under the id clock's lock, so that no thread stores an older one.
  alignas(64) Atomic<uint64_t> read_at_{0};  // cycles, from before the clocks were read
  Atomic<int64_t> tick_{INT64_MIN};
};

}  // namespace firn
