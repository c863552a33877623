#pragma once

#include <atomic>

#include "common/base/atomic.h"
#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// Why a grant ends where it does.
struct GrantEnd {
  const char* why;     // for messages of refusals
  bool passes = true;  // the keeper extends the grant by itself: a call can wait
};

// A grant of a machine id to this process for a time range, as issuers see it. They may issue only
// ids of machine(), with ticks at or after first_tick() and before end_tick().
//
// The keeper of the claim (registry/) extends the end; a sequencer reads it after computing
// each id. The end never falls: granted ticks stay granted, even if the claim is lost later.
// Thread-safe; shared between keeper and sequencer by shared_ptr.
class Claim {
 public:
  // `base` is the claim's first permitted moment; nothing is permitted until ExtendTo.
  Claim(const Layout& layout, MachineId machine, WallMs base)
      : layout_(layout),
        machine_(machine),
        first_tick_(layout.FirstTickFrom(base)),
        end_tick_(first_tick_.count()),
        end_(&kNothingYet) {}

  const Layout& layout() const { return layout_; }
  MachineId machine() const { return machine_; }
  Tick first_tick() const { return first_tick_; }

  const GrantEnd& end() const { return *end_.load(std::memory_order_relaxed); }
  // Called by the keeper only; `end` is a constant.
  void Explain(const GrantEnd& end) { end_.store(&end, std::memory_order_relaxed); }
  void Explain(const GrantEnd&&) = delete;

  // Returns the first tick that is not completely granted.
  Tick end_tick() const { return Tick(end_tick_.load(std::memory_order_acquire)); }

  // Grants every tick that ends before `limit`. Called by the keeper only; ignores a lower limit.
  void ExtendTo(WallMs limit);

 private:
  static constexpr GrantEnd kNothingYet{.why = "nothing is granted yet", .passes = false};

  const Layout layout_;
  const MachineId machine_;
  const Tick first_tick_;
  Atomic<int64_t> end_tick_;
  std::atomic<const GrantEnd*> end_;
};

}  // namespace firn
