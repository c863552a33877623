#pragma once

#include <atomic>

#include "common/base/atomic.h"
#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// One grant of a machine id's time to this process, as those who issue see it: issue ticks at or
// after first_tick() and before end_tick(), under machine(), and under nothing else.
//
// The keeper of the claim (registry/) moves the end ahead; a sequencer reads it after computing
// each id. The end never goes back: what has been granted stays granted, also when the claim is
// lost later. Thread-safe; shared between keeper and sequencer by shared_ptr.
class Claim {
 public:
  // `base` is the claim's first permitted moment; nothing is permitted until ExtendTo.
  Claim(const Layout& layout, MachineId machine, WallMs base)
      : layout_(layout),
        machine_(machine),
        first_tick_(layout.FirstTickFrom(base)),
        end_tick_(first_tick_.count()),
        why_("nothing is granted yet") {}

  const Layout& layout() const { return layout_; }
  MachineId machine() const { return machine_; }
  Tick first_tick() const { return first_tick_; }

  // Why the grant ends where it does, for those who are refused because of it.
  const char* why_it_ends() const { return why_.load(std::memory_order_relaxed); }
  // Keeper only; `why` is a literal.
  void Explain(const char* why) { why_.store(why, std::memory_order_relaxed); }

  // The first tick that is not, or not wholly, granted.
  Tick end_tick() const { return Tick(end_tick_.load(std::memory_order_acquire)); }

  // Grants every tick that lies wholly before `limit`. Keeper only; a lower limit changes nothing.
  void ExtendTo(WallMs limit);

 private:
  const Layout layout_;
  const MachineId machine_;
  const Tick first_tick_;
  Atomic<int64_t> end_tick_;
  std::atomic<const char*> why_;
};

}  // namespace firn
