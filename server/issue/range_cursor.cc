#include "server/issue/range_cursor.h"

#include <algorithm>

#include "common/base/status.h"

namespace firn {

Range RangeCursor::TakeUpTo(int64_t count) {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  if (epoch == 0 || left() == 0) return {};
  const uint64_t word = cell_.fetch_sub(static_cast<uint64_t>(count), std::memory_order_acquire);
  const int64_t left = LeftIn(word);
  if (left <= 0) return {};
  return RangeOf(word, epoch, std::min(left, count));
}

// Reads the slot's epoch last: Load changes a slot's epoch before its other members.
Range RangeCursor::RangeOf(uint64_t word, uint64_t epoch, int64_t taken) {
  const int64_t left = LeftIn(word);
  const Slot& slot = slots_[word >> kLeftBits];
  const int64_t end = slot.end.load(std::memory_order_acquire);
  const int64_t mark = slot.mark.load(std::memory_order_acquire);
  if (slot.epoch.load(std::memory_order_relaxed) - epoch > 1) {
    lost_.fetch_add(taken, std::memory_order_relaxed);
    return {};
  }
  if (left >= mark && left - taken < mark) low_water_.OnLow();
  return {end - left, end - left + taken};
}

bool RangeCursor::SettleLate(uint64_t word, uint64_t epoch, int64_t* number) {
  const Range taken = RangeOf(word, epoch, 1);
  *number = taken.begin;
  return !taken.empty();
}

int64_t RangeCursor::left() const {
  return std::max<int64_t>(0, LeftIn(cell_.load(std::memory_order_acquire)));
}

void RangeCursor::Load(Range range, int64_t mark) {
  if (range.empty() || range.size() > kSizeMax) Die("a range of no numbers, or too many");
  if (left() > 0) Die("a range was loaded over one that is not used up");
  Shut();
  const uint64_t epoch = ++loaded_;
  Slot& slot = slots_[epoch % kSlots];
  slot.epoch.store(0, std::memory_order_relaxed);
  slot.end.store(range.end, std::memory_order_release);
  slot.mark.store(mark, std::memory_order_release);
  slot.epoch.store(epoch, std::memory_order_relaxed);
  end_.store(range.end, std::memory_order_relaxed);
  mark_.store(mark, std::memory_order_relaxed);
  cell_.exchange((epoch % kSlots) << kLeftBits | static_cast<uint64_t>(range.size()),
                 std::memory_order_release);
  epoch_.store(epoch, std::memory_order_release);
}

Range RangeCursor::Unload() {
  const int64_t left = LeftIn(cell_.exchange(0, std::memory_order_relaxed));
  Shut();
  if (left <= 0) return {};
  const int64_t end = end_.load(std::memory_order_relaxed);
  return {end - left, end};
}

}  // namespace firn
