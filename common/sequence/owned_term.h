#pragma once

#include <cstdint>

#include "common/base/atomic.h"
#include "common/base/units.h"

namespace firn {

// The term for which this server owns a partition: the threads that take numbers read it, the
// control thread writes it.
//
//     const uint64_t term = owned.Load();                // before the number is taken
//     if (term == 0 || !cursor.TakeOne(&number)) ...
//     if (!owned.Holds(term, clock.Boot())) ...          // after it: discard the number
//
// Both orders matter. A thread that compares before it takes may sleep in between, while another
// server issues larger numbers. A thread that loads after it has taken may find a later term of
// this server, and pass an old number for one of that term.
//
// `until` rises within a term, and is changed otherwise only while there is none. So if the term
// is the same at both ends, the `until` that was read between them belongs to it.
class OwnedTerm {
 public:
  // Returns the present term, whether or not its time is over; 0: none. Terms rise.
  uint64_t Load() const { return term_.load(std::memory_order_acquire); }

  // Whether the term had not ended when `now` was read, of the boot clock.
  bool Holds(uint64_t term, BootMs now) const {
    const int64_t until = until_.load(std::memory_order_acquire);
    return term != 0 && now.ms() < until && term_.load(std::memory_order_acquire) == term;
  }

  BootMs until() const { return BootMs(until_.load(std::memory_order_acquire)); }

  // For the control thread.
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
