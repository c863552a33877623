#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "client/lease/lease_request.h"
#include "common/base/atomic.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/id/claim.h"
#include "common/id/id_clock.h"
#include "common/sequence/sequencer_kinds.h"
#include "common/sequence/tick_source.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {

// Issues ids from successive leases.
//
//  1. An id has a tick in [from, until) of the lease. This is checked after the id was computed.
//  2. Ids rise across threads and leases: under the next lease, ids start above the last tick used.
//  3. The id clock starts at the wall clock or at the lease's first tick, whichever is later, and
//     follows the boot clock while the wall clock is behind (common/id/id_pace.h). A wrong clock
//     wastes the interval and repeats no id. After the wall clock has jumped forward, no id is
//     issued until RaiseClockTo confirms the jump or the wall clock is set back.
//  4. After Close, and in a forked child, no id is issued.
//
// Thread-safe, except that only the lessee's thread may call Adopt, ExtendTo, RaiseClockTo, Close,
// Advance and last_used.
class LeasedIds {
 public:
  // `clock` and `entropy` must outlive this; only Adopt uses `entropy`. TryNext calls `on_jump`
  // once for each jump of the wall clock that it finds. `on_jump` must not call this object.
  LeasedIds(
      const Clock& clock, Entropy& entropy, bool use_cycles = CyclesAreSteady(),
      std::function<void()> on_jump = [] {});

  // Ends the current lease and issues ids of this one from now on. kInvalid, and no change, for
  // unusable terms, another layout, or an interval that has ended, so that a late answer does not
  // replace a lease in use.
  Status Adopt(const LeaseGrant& terms);

  // Moves the end of the current lease to `until`. Ignores an earlier end.
  void ExtendTo(Tick until);

  // Moves the id clock forward to `time`, which a server has confirmed.
  void RaiseClockTo(WallMs time);

  // Ends the current lease: no id is issued after this has returned. Later calls fail with `why`.
  void Close(Status why);

  // Advances the id clock to the present time and returns it.
  WallMs Advance();

  // Returns whether the wall clock has jumped forward and no server has confirmed the jump.
  bool jumped() const { return id_clock_.Stopped(); }

  // Returns the last tick with an issued id of the lease that ended last, or the tick before its
  // first.
  Tick last_used() const { return last_used_; }

  // Returns the next id. kUnavailable: there is no lease, its interval has ended, or this tick's
  // sequence is used up. In the last case sets `*wait` to the time until the next tick, otherwise
  // to zero.
  Result<int64_t> TryNext(std::chrono::microseconds* wait) {
    const Used& used = used_[place_];
    if (used.version == version_.load(std::memory_order_acquire)) [[likely]] {
      Holding& held = *used.held;
      const Tick now = held.ticks.Current();
      const uint64_t position =
          now == TickSource::kStopped ? Sequencer::kNone : held.sequencer.TakeOne(now);
      if (position != Sequencer::kNone) [[likely]]
        return held.IdAt(position);
    }
    return TryNextSlowly(wait);
  }

  // Returns whether the process was forked after this object was created.
  bool InChild() const { return sentinel_.InChild(); }

  struct Interval {
    MachineId machine;
    WallMs from;
    WallMs until;
  };
  // Returns the interval of the current lease.
  std::optional<Interval> interval() const;

 private:
  struct Holding {
    Holding(const LeaseGrant& terms, std::shared_ptr<Claim> granted, TickSource& tick_source,
            ForkCells::Cell& cell, uint64_t seed)
        : claim(std::move(granted)),
          ticks(tick_source),
          shape(claim->layout(), SequenceStart::kRandom, seed),
          base_bits(terms.base_bits),
          sequencer(claim, shape, cell) {}

    int64_t IdAt(uint64_t position) const {
      return claim->layout().PackUnchecked(base_bits, shape.TickOf(position),
                                           shape.SequenceOf(position));
    }

    const std::shared_ptr<Claim> claim;
    TickSource& ticks;
    const SequenceShape shape;
    const uint64_t base_bits;
    AtomicSequencer<SequenceRules> sequencer;
  };

  // The lease that a thread used last. A thread may still use the object when the lease has ended,
  // so the thread also owns it (UseInThread).
  struct Used {
    uint64_t version;
    Holding* held;
  };
  // An ended lease and its cell. The cell is reused once no thread owns the lease.
  struct Retired {
    std::weak_ptr<const Holding> held;
    ForkCells::Cell* cell;
  };

  static constexpr size_t kUsedMax = 8;  // per thread; generators with equal places take turns

  static inline constinit thread_local std::array<Used, kUsedMax> used_{};

  void UseInThread() const;
  static uint64_t DrawVersion();
  Result<ForkCells::Cell*> TakeCell();
  Result<int64_t> TryNextSlowly(std::chrono::microseconds* wait);
  Status WhyNot(const Holding& held, const Step& step) const;
  void CloseCurrent();
  void MoveClockTo(Tick first, Tick until);

  const Clock& clock_;
  Entropy& entropy_;
  const bool use_cycles_;
  const std::function<void()> on_jump_;
  IdClock id_clock_;
  std::optional<TickSource> ticks_;  // set by the first lease, which has the layout

  // Identifies the current lease, or the present state without a lease. Unique across objects and
  // time.
  Atomic<uint64_t> version_;
  const size_t place_;           // index into used_
  const ForkSentinel sentinel_;  // checked before locking: a child's mutex_ may stay locked
  mutable Mutex mutex_;
  ForkCells cells_;
  std::shared_ptr<Holding> current_{};  // this and the next members under mutex_
  ForkCells::Cell* cell_ = nullptr;     // of current_
  std::vector<Retired> retired_{};
  uint64_t jump_told_ = UINT64_MAX;  // the clock's count of forward steps at the last reported jump
  Status why_not_;
  Tick last_used_{-1};
};

}  // namespace firn
