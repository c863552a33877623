#pragma once

#include <cstdint>

#include "common/base/atomic.h"
#include "common/base/units.h"

namespace firn {

// The term for which this server owns a partition. The control thread writes it; the threads that
// take numbers read it.
//
//     const uint64_t term = owned.Load();                // before the number is taken
//     if (term == 0 || !cursor.TakeOne(&number)) ...
//     if (!owned.Holds(term, clock.Boot())) ...          // after it: discard the number
//
// Both steps must be in this order. If a thread called Holds before it takes a number, it could
// sleep in between while another server issues larger numbers. If a thread called Load after it has
// taken a number, it could get a later term of this server and use an old number in that term.
//
// Within a term, `until` only rises. All other changes of `until` happen while there is no term. So
// if the term is the same before and after a read of `until`, the value belongs to that term.
class OwnedTerm {
 public:
  // Returns the current term, even if its time is over; 0: none. Terms rise.
  uint64_t Load() const { return term_.load(std::memory_order_acquire); }

  // Returns whether the term had not ended when `now` was read from the boot clock.
  bool Holds(uint64_t term, BootMs now) const {
    const int64_t until = until_.load(std::memory_order_acquire);
    return term != 0 && now.ms() < until && term_.load(std::memory_order_acquire) == term;
  }

  BootMs until() const { return BootMs(until_.load(std::memory_order_acquire)); }

  // Control thread only.
  void Begin(uint64_t term, BootMs until) {
    until_.store(until.ms(), std::memory_order_release);
    term_.store(term, std::memory_order_release);
  }
  void Extend(BootMs until) { until_.store(until.ms(), std::memory_order_release); }
  void End() { term_.store(0); }

 private:
  Atomic<uint64_t> term_{0};
  Atomic<int64_t> until_{0};
};

}  // namespace firn
