#include "common/sequence/tick_source.h"

#include <algorithm>

namespace firn {

TickSource::TickSource(const Layout& layout, IdClock& id_clock, const Clock& clock, bool use_cycles)
    : layout_(layout),
      id_clock_(id_clock),
      clock_(clock),
      fresh_cycles_(use_cycles ? kFreshCycles : 0) {
  Refresh();
}

Tick TickSource::Refresh() {
  const uint64_t before = CycleCount();
  const auto show = [this](WallMs time) { Show(time); };
  const bool steered = id_clock_.TryAdvance(clock_.Read(), show);
  if (id_clock_.Stopped()) return kStopped;
  // Stored after the tick, so that a thread that reads the new stamp also reads a tick that is at
  // least as new.
  if (steered) read_at_.store(before, std::memory_order_release);
  return std::max(layout_.TickAt(id_clock_.Last()), Tick(tick_.load(std::memory_order_relaxed)));
}

void TickSource::RaiseTo(WallMs time) {
  id_clock_.RaiseTo(time, clock_.Read(), [this](WallMs shown) { Show(shown); });
}

void TickSource::Restart(WallMs time, Now now) {
  id_clock_.Restart(time, now, [this](WallMs shown) { Show(shown); });
  read_at_.store(0, std::memory_order_relaxed);  // marks the reading as outdated
}

std::chrono::microseconds TickSource::Until(Tick tick) const {
  const Milliseconds whole = layout_.StartOf(tick) - id_clock_.Last() - Milliseconds(1);
  return std::max(whole, Milliseconds(0)) + clock_.ToNextWallMs();
}

}  // namespace firn
