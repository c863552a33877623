#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "common/base/atomic.h"
#include "common/base/fork.h"
#include "common/sequence/sequence_rules.h"
#include "common/sequence/sequencer.h"

namespace firn {

// Pauses for about 1 us: long enough for another thread to change the word several times in its own
// cache, and much shorter than a tick.
inline void PauseBriefly() {
  for (int i = 0; i < 64; ++i) PauseOnce();
}

// A lock for critical sections of a few nanoseconds. It is not fair, and other threads spin while
// the holder is preempted, so it is never the default.
class SpinLock {
 public:
  void lock() {
    while (held_.exchange(true, std::memory_order_acquire)) PauseBriefly();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  Atomic<bool> held_{false};
};

// Common base of the three kinds: the word in its cell, and closing.
//
// The word contains the whole state, so taking numbers needs no memory order. Closing needs one:
// the closing thread publishes its earlier writes (the next sequencer), and a thread that finds the
// word closed reads them. Code that passes a sequencer to other threads also publishes the first
// word. interleavings_test fails if any of these orders is missing.
template <typename Rules>
class CellSequencer : public Sequencer {
 public:
  CellSequencer(std::shared_ptr<const Claim> claim, const SequenceShape& shape,
                ForkCells::Cell& cell)
      : cell_(cell), claim_(std::move(claim)), shape_(shape) {
    cell_.store(kOpen | shape_.Position(claim_->first_tick(), 0), std::memory_order_relaxed);
  }

  Tick Last() const final {
    const uint64_t word = cell_.load(std::memory_order_relaxed);
    return word == kClosed ? last_ : Rules::Last(shape_, word & ~kOpen);
  }

  bool closed() const final { return cell_.load(std::memory_order_acquire) == kClosed; }

 protected:
  static constexpr uint64_t kClosed = 0;
  static constexpr uint64_t kOpen = uint64_t{1} << 63;  // an open word is never 0

  // Computes one attempt on `word`. Sets `*after` to the word to write, which is `word` if nothing
  // changes.
  Step Attempt(uint64_t word, Tick now, uint64_t want, uint64_t* after) const {
    const uint64_t next = word & ~kOpen;
    *after = next;
    const Step step = Rules::Take(shape_, *claim_, next, now, want, after);
    *after |= kOpen;
    return step;
  }

  uint64_t PositionOf(const Step& step) const {
    return step.kind == Step::Kind::kTaken ? shape_.Position(step.tick, step.first) : kNone;
  }

  Tick SwapInClosed() {
    const uint64_t word = cell_.exchange(kClosed, std::memory_order_release);
    if (word != kClosed) last_ = Rules::Last(shape_, word & ~kOpen);
    return last_;
  }

  ForkCells::Cell& cell_;

 private:
  const std::shared_ptr<const Claim> claim_;
  const SequenceShape shape_;
  Tick last_;  // valid once closed; set by the closing thread, so Last needs no memory order
};

// Lock-free: some thread always makes progress. A thread that loses a race pauses briefly, so that
// the winner can take several numbers while the cache line is in its cache.
template <typename Rules>
class AtomicSequencer final : public CellSequencer<Rules> {
  using Base = CellSequencer<Rules>;

 public:
  using Base::Base;

  Step Take(Tick now, uint64_t want) override {
    for (;;) {
      uint64_t word = this->cell_.load(std::memory_order_acquire);
      if (word == Base::kClosed) return {};
      uint64_t after = 0;
      const Step step = this->Attempt(word, now, want, &after);
      if (after == word) return step;
      if (this->cell_.compare_exchange_weak(word, after, std::memory_order_relaxed)) return step;
      PauseBriefly();
    }
  }

  uint64_t TakeOne(Tick now) override { return this->PositionOf(Take(now, 1)); }
  Tick Close() override { return this->SwapInClosed(); }
};

// Takes numbers under a lock. Checks closed() before locking, because in a forked child a lock that
// another thread of the parent held is never released.
template <typename Rules, typename Lock>
class LockedSequencer final : public CellSequencer<Rules> {
  using Base = CellSequencer<Rules>;

 public:
  using Base::Base;

  Step Take(Tick now, uint64_t want) override {
    if (this->closed()) return {};
    const std::lock_guard hold(lock_);
    const uint64_t word = this->cell_.load(std::memory_order_relaxed);
    if (word == Base::kClosed) return {};
    uint64_t after = 0;
    const Step step = this->Attempt(word, now, want, &after);
    this->cell_.store(after, std::memory_order_relaxed);
    return step;
  }

  uint64_t TakeOne(Tick now) override { return this->PositionOf(Take(now, 1)); }

  Tick Close() override {
    if (this->closed()) return this->Last();
    const std::lock_guard hold(lock_);
    return this->SwapInClosed();
  }

 private:
  Lock lock_;
};

}  // namespace firn
