#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/fork_cells.h"
#include "server/issue/range.h"

namespace firn {

// Hands out the numbers of one range after another to any number of threads, each number once and
// rising, with one fetch_sub a call.
//
//      63      60 59                                        0
//     +----------+------------------------------------------+
//     | epoch%16 |  numbers left in the range, signed       |   the word, in a ForkCell
//     +----------+------------------------------------------+
//
//  1. What is left before a call says which number it gets: end - left. Nothing left, or less than
//     nothing, as a call on an empty range leaves it: no number.
//  2. Each range that is loaded is an epoch. Its end lies in one of 16 slots, so a thread that has
//     taken from the word looks there, and then whether the slot is still of the epoch in which it
//     began, or of the next one. If not, 15 ranges or more have come and gone while it was
//     interrupted: the number is lost. Otherwise the slot is that of the word, since epochs never
//     go back.
//  3. Unloading swaps 0 into the word: nothing left. A forked child finds 0 there, too.
//  4. While nothing is loaded the epoch is 0, which callers see before they touch the word, so it
//     cannot be counted down without end.
//
// TakeOne and TakeUpTo: any thread. Load, Unload and Shut: one at a time, under their owner's
// mutex.
class RangeCursor {
 public:
  static constexpr int64_t kSizeMax = int64_t{1} << 58;  // of a range

  // `cell` must hold 0, outlive this and be nobody else's.
  explicit RangeCursor(ForkCells::Cell& cell) : cell_(cell) {}
  RangeCursor(const RangeCursor&) = delete;
  RangeCursor& operator=(const RangeCursor&) = delete;

  // True and a number, or false. `*low` becomes true in the one call that takes what is left down
  // to the mark that Load was given; otherwise it is left alone.
  bool TakeOne(int64_t* number, bool* low) {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    if (epoch == 0) return false;
    const uint64_t word = cell_.fetch_sub(1, std::memory_order_acq_rel);
    const int64_t left = LeftIn(word);
    if (left <= 0) return false;
    const Slot& slot = slots_[word >> kLeftBits];
    const int64_t end = slot.end.load(std::memory_order_acquire);
    if (left == slot.mark.load(std::memory_order_acquire)) *low = true;
    if (slot.epoch.load(std::memory_order_relaxed) - epoch > 1) return Lost(1);
    *number = end - left;
    return true;
  }

  // Up to `count` numbers of one range; empty when there are none.
  Range TakeUpTo(int64_t count, bool* low);

  // Numbers that can be taken.
  int64_t left() const;

  // From now on numbers are taken from `range`, of 1 to kSizeMax numbers; `mark` of them left is
  // what calls low. Nothing may be left of the range before.
  void Load(Range range, int64_t mark);

  // Nothing can be taken after it has returned. What was left.
  Range Unload();

  // Says that the range is used up, which it is; saves callers the attempt.
  void Shut() { epoch_.store(0, std::memory_order_release); }

  // Numbers lost by rule 2, ever.
  int64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kLeftBits = 60;
  static constexpr size_t kSlots = 16;

  struct Slot {
    std::atomic<uint64_t> epoch{0};
    std::atomic<int64_t> end{0};
    std::atomic<int64_t> mark{0};
  };

  static int64_t LeftIn(uint64_t word) {
    return static_cast<int64_t>(word << (64 - kLeftBits)) >> (64 - kLeftBits);
  }
  bool Lost(int64_t count);

  // Read by every call, written once a range.
  ForkCells::Cell& cell_;
  std::atomic<uint64_t> epoch_{0};  // of the range that is loaded; 0: none
  std::array<Slot, kSlots> slots_;
  uint64_t loaded_ = 0;  // ranges, ever; the owner's
  std::atomic<int64_t> lost_{0};
};

}  // namespace firn
