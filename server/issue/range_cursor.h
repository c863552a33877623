#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/atomic.h"
#include "common/base/fork.h"
#include "server/issue/range.h"

namespace firn {

// A listener for the moment when few numbers of a range are left. The thread that takes the number
// calls it, at most once per range.
class LowWater {
 public:
  virtual void OnLow() noexcept = 0;

 protected:
  ~LowWater() = default;
};

// Issues the numbers of successive ranges to any number of threads: each number once, in rising
// order, with one fetch_sub per call.
//
//      63      60 59                                        0
//     +----------+------------------------------------------+
//     | epoch%16 |  numbers left in the range, signed       |   the word, in a ForkCell
//     +----------+------------------------------------------+
//
//   1. A call's number is end - left, where `left` is the count before the call. If left <= 0, the
//      call gets no number. It is negative after calls on an empty range.
//   2. Each loaded range has an epoch, never reused. A caller reads epoch and end, takes from the
//      word, and reads the epoch again. Load sets the epoch to 0, changes end and word, and then
//      stores the new epoch. So if the epoch is unchanged, the number taken and the end belong
//      together: a caller that took from the next range's word, or read its end, sees another epoch
//      afterwards.
//   3. A caller that sees another epoch was interrupted, but may still hold a number. The ends of
//      the last 16 epochs are kept in slots, and the word contains the index of its slot, its epoch
//      modulo 16. The slot may have been reused. Epochs only grow, so the word's epoch is at least
//      the one read first and at most the slot's, and both have the same remainder modulo 16. So if
//      the slot's epoch is the one read first, or the next one, it is the word's. Otherwise at
//      least two ranges have been loaded meanwhile, and the number is lost.
//
//   4. Unload exchanges the word for 0, so nothing is left. The rest that it returns begins above
//      every number that a thread has taken or can still take: taking is atomic, so it happens
//      before or after the exchange. A forked child reads 0, too.
//   5. While nothing is loaded, the epoch is 0. Callers check the epoch before they access the
//      word, so each thread decrements an empty word at most once per range.
//
// Memory orders. interleavings_test fails without any acquire or release here:
// * The exchange that loads a range releases the stores made for it, and a thread that takes from
//   it acquires them: so the epoch that it reads afterwards is not the previous one.
// * Reading the end of a range that is still being loaded is harmless, because nothing is left in
//   the word then. Taking releases, and left(), with which every load begins, acquires. So a caller
//   never reads the end of a range that was loaded after it took its number, which some processors
//   would otherwise permit.
// * The stores of a slot's end and mark release the earlier store that cleared its epoch.
// All other accesses are relaxed: an epoch of 0 and an unloaded word publish no other data.
//
// Threads that take numbers write only to the cell's cache line. The other lines that they read
// change once per range.
//
// TakeOne, TakeUpTo and left: any thread. The others: one at a time, under their owner's mutex.
class RangeCursor {
 public:
  static constexpr int64_t kSizeMax = int64_t{1} << 58;  // of a range

  // `cell` must contain 0, outlive this and have no other user. `low_water` must outlive this; it
  // is called without a lock when fewer numbers are left than the mark given to Load.
  RangeCursor(ForkCells::Cell& cell, LowWater& low_water) : cell_(cell), low_water_(low_water) {}
  RangeCursor(const RangeCursor&) = delete;
  RangeCursor& operator=(const RangeCursor&) = delete;

  // Takes a number; returns false if there is none. After the fetch_sub it reads only the epoch,
  // because each read there delays this caller and every thread that needs the word.
  bool TakeOne(int64_t* number) {
    const CursorState sight = Read();
    if (sight.epoch == 0) return false;
    return Settle(sight, cell_.fetch_sub(1, std::memory_order_acq_rel), number);
  }

  // Takes up to `count` numbers of one range; returns an empty range if there are none.
  Range TakeUpTo(int64_t count);

  // Number of numbers that are left.
  int64_t left() const;

  // The number that is taken next, or a lower one if other threads take numbers meanwhile. left()
  // must be above 0.
  int64_t next() const { return end_.load(std::memory_order_relaxed) - left(); }

  // Loads `range`, of 1 to kSizeMax numbers; LowWater is notified when fewer than `mark`
  // of them are left. The previous range must be used up or unloaded.
  void Load(Range range, int64_t mark);

  // Removes the range and returns its rest. No number can be taken afterwards.
  Range Unload();

  // Marks the range, which must be used up, as unloaded. This spares callers the fetch_sub.
  void Shut() { epoch_.store(0, std::memory_order_relaxed); }

  // Number of numbers lost by rule 3 since construction.
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  friend class SleepyCaller;  // a test's class: delays the steps of a call

  static constexpr int kLeftBits = 60;
  static constexpr size_t kSlots = 16;
  static constexpr size_t kLine = 64;

  struct alignas(kLine / 2) Slot {
    Atomic<uint64_t> epoch{0};
    Atomic<int64_t> end{0};
    Atomic<int64_t> mark{0};
  };

  // The values that a caller reads before it takes a number.
  struct CursorState {
    uint64_t epoch;
    int64_t end;
    int64_t mark;
  };

  CursorState Read() const {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    return {epoch, end_.load(std::memory_order_relaxed), mark_.load(std::memory_order_relaxed)};
  }

  // Rules 1 and 2: sets the number taken from `word`; returns false if there is none.
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

  // Rule 3: returns the `taken` numbers that a caller took from `word` after it had read `epoch`;
  // empty if they are lost.
  Range RangeOf(uint64_t word, uint64_t epoch, int64_t taken);

  // Read by every call, written once per range.
  alignas(kLine) ForkCells::Cell& cell_;
  LowWater& low_water_;
  Atomic<uint64_t> epoch_{0};  // of the loaded range; 0: none
  Atomic<int64_t> end_{0};     // of that range
  Atomic<int64_t> mark_{0};

  alignas(kLine) std::array<Slot, kSlots> slots_;  // for delayed callers
  uint64_t loaded_ = 0;  // ranges loaded since construction; used by the owner
  Atomic<int64_t> lost_{0};
};

}  // namespace firn
