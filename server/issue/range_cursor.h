#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/atomic.h"
#include "common/base/fork.h"
#include "server/issue/range.h"

namespace firn {

// Is notified that a range is nearly used up. Called by the thread that takes the number, at most
// once per range.
class LowWater {
 public:
  virtual void OnLow() noexcept = 0;

 protected:
  ~LowWater() = default;
};

// Gives the numbers of one range after another to any number of threads, each number once and
// rising, with one fetch_sub per call.
//
//      63      60 59                                        0
//     +----------+------------------------------------------+
//     | epoch%16 |  numbers left in the range, signed       |   the word, in a ForkCell
//     +----------+------------------------------------------+
//
//  1. What is left before a call says which number it gets: end - left. If nothing is left, or less
//     than nothing, as after calls on an empty range: no number.
//  2. Each range that is loaded is an epoch. A caller reads epoch and end, takes from the word, and
//     reads the epoch again. Before a range is put in place, the epoch is set to 0; then end and
//     word are changed; then the epoch gets its new number, which was never used before. So if the
//     epoch is unchanged, the number that was taken and the end belong together: a caller that
//     takes from the next range's word, or has read its end, finds another epoch afterwards.
//  3. A caller that finds another epoch was interrupted, but may still hold a number. The ends of
//     the last 16 epochs are in slots, and the word says in which one to look. Another epoch may
//     have the slot by now. The word's epoch is not before the one that was read first (epochs
//     never go back), not after the slot's (nor do slots), and equal to the slot's modulo 16. So
//     when the slot's is the one that was read first, or the next, it is the word's. Otherwise two
//     ranges or more have been loaded meanwhile, and the number is lost.
//  4. Unloading swaps 0 into the word: nothing left. What it returns begins above every number that
//     a thread has taken or may yet take, since taking is one step, too, and comes before the swap
//     or after it. A forked child finds 0 there, too.
//  5. While nothing is loaded the epoch is 0, which callers see before they touch the word, so it
//     cannot be counted down without end: each thread does so once, then waits for the next range.
//
// Memory orders. interleavings_test fails without any acquire or release here:
// * The exchange that puts a range in place releases what was stored for it, and a thread that
//   takes from it acquires that: so the epoch that it reads afterwards is not the previous one.
// * An end of a range that is still being loaded is harmless, since the word then holds nothing.
//   Taking releases, and left(), which every load begins with, acquires, so that the end is never
//   that of a range loaded after the taking (as a load may see on some processors).
// * A slot's end and mark release that its epoch was taken away before.
// The rest is relaxed: an epoch of 0 and an unloaded word publish nothing else.
//
// Threads that take share one line that they write, the cell's. What they read lies on lines that
// are written once a range.
//
// TakeOne, TakeUpTo and left: any thread. The others: one at a time, under their owner's mutex.
class RangeCursor {
 public:
  static constexpr int64_t kSizeMax = int64_t{1} << 58;  // of a range

  // `cell` must hold 0, outlive this and have no other user. `low_water` must outlive this, too; it
  // is called without a lock when what is left falls to the mark that Load was given.
  RangeCursor(ForkCells::Cell& cell, LowWater& low_water) : cell_(cell), low_water_(low_water) {}
  RangeCursor(const RangeCursor&) = delete;
  RangeCursor& operator=(const RangeCursor&) = delete;

  // True and a number, or false. After the fetch_sub it reads only the epoch from memory: every
  // caller waits for that read, and so does every other thread that needs the word.
  bool TakeOne(int64_t* number) {
    const CursorState sight = Read();
    if (sight.epoch == 0) return false;
    return Settle(sight, cell_.fetch_sub(1, std::memory_order_acq_rel), number);
  }

  // Takes up to `count` numbers of one range; empty if there are none.
  Range TakeUpTo(int64_t count);

  // Numbers that can be taken.
  int64_t left() const;

  // The number that is taken next, or a lower one if others take meanwhile; left() must be above 0.
  int64_t next() const { return end_.load(std::memory_order_relaxed) - left(); }

  // From now on numbers are taken from `range`, of 1 to kSizeMax numbers; it counts as low when
  // `mark` of them are left. Nothing may be left of the range before.
  void Load(Range range, int64_t mark);

  // Nothing can be taken after it has returned. Returns the rest.
  Range Unload();

  // Says that the range is used up, which it is; saves callers the attempt.
  void Shut() { epoch_.store(0, std::memory_order_relaxed); }

  // Numbers lost by rule 3, ever.
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  friend class SleepyCaller;  // of a test: delays the steps of a call

  static constexpr int kLeftBits = 60;
  static constexpr size_t kSlots = 16;
  static constexpr size_t kLine = 64;

  struct alignas(kLine / 2) Slot {
    Atomic<uint64_t> epoch{0};
    Atomic<int64_t> end{0};
    Atomic<int64_t> mark{0};
  };

  // What a caller knows before it takes.
  struct CursorState {
    uint64_t epoch;
    int64_t end;
    int64_t mark;
  };

  CursorState Read() const {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    return {epoch, end_.load(std::memory_order_relaxed), mark_.load(std::memory_order_relaxed)};
  }

  // Rules 1 and 2: the number that was taken from `word`.
  bool Settle(const CursorState& sight, uint64_t word, int64_t* number) {
    const int64_t left = LeftIn(word);
    if (left <= 0) return false;
    if (epoch_.load(std::memory_order_relaxed) != sight.epoch) [[unlikely]] {
      return SettleLate(word, sight.epoch, number);
    }
    if (left == sight.mark) [[unlikely]] {
      low_water_.OnLow();
    }
    *number = sight.end - left;
    return true;
  }

  // Rule 3.
  bool SettleLate(uint64_t word, uint64_t epoch, int64_t* number);

  static int64_t LeftIn(uint64_t word) {
    return static_cast<int64_t>(word << (64 - kLeftBits)) >> (64 - kLeftBits);
  }

  // The same for several: what a caller that had read `epoch` took from `word`; empty when it is
  // lost.
  Range RangeOf(uint64_t word, uint64_t epoch, int64_t taken);

  // Read by every call, written once a range.
  alignas(kLine) ForkCells::Cell& cell_;
  LowWater& low_water_;
  Atomic<uint64_t> epoch_{0};  // of the range that is loaded; 0: none
  Atomic<int64_t> end_{0};     // of that range
  Atomic<int64_t> mark_{0};

  alignas(kLine) std::array<Slot, kSlots> slots_;  // for delayed callers
  uint64_t loaded_ = 0;                            // ranges, ever; used by the owner
  Atomic<int64_t> lost_{0};
};

}  // namespace firn
