#include "server/issue/range_cursor.h"

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace firn {

// A call of TakeOne that is delayed between its steps.
class SleepyCaller {
 public:
  explicit SleepyCaller(RangeCursor& cursor) : cursor_(cursor) {}

  void Look() { sight_ = cursor_.Read(); }
  void Take() { word_ = cursor_.cell_.fetch_sub(1); }

  // Returns the number that the call gets, or -1.
  int64_t Finish() {
    int64_t number = -1;
    return cursor_.Settle(sight_, word_, &number) ? number : -1;
  }

 private:
  RangeCursor& cursor_;
  RangeCursor::CursorState sight_{};
  uint64_t word_ = 0;
};

namespace {

class RangeCursorTest : public testing::Test, private LowWater {
 protected:
  // Returns the next number, or -1.
  int64_t One() {
    int64_t number = -1;
    return cursor_.TakeOne(&number) ? number : -1;
  }

  void OnLow() noexcept override { low_ = true; }

  ForkCells cells_;
  RangeCursor cursor_{**cells_.Take(), *this};
  std::atomic<bool> low_ = false;
};

TEST_F(RangeCursorTest, GivesNothingBeforeItIsLoaded) {
  EXPECT_EQ(One(), -1);
  EXPECT_TRUE(cursor_.TakeUpTo(10).empty());
  EXPECT_EQ(cursor_.left(), 0);
}

TEST_F(RangeCursorTest, GivesEveryNumberOnceAndInOrder) {
  cursor_.Load({100, 105}, 1);
  for (int64_t i = 100; i < 105; ++i) EXPECT_EQ(One(), i);
  EXPECT_EQ(One(), -1);
  EXPECT_EQ(One(), -1);
  cursor_.Load({200, 201}, 1);
  EXPECT_EQ(One(), 200) << "calls on the empty range do not cost the next range a number";
}

TEST_F(RangeCursorTest, ReportsTheLowMarkToOneCall) {
  cursor_.Load({0, 10}, 7);
  for (int i = 0; i < 3; ++i) One();
  EXPECT_FALSE(low_);
  One();
  EXPECT_TRUE(low_);
  low_ = false;
  for (int i = 0; i < 6; ++i) One();
  EXPECT_FALSE(low_);
}

TEST_F(RangeCursorTest, ABatchIsTruncatedAtTheEnd) {
  cursor_.Load({0, 10}, 8);
  EXPECT_EQ(cursor_.TakeUpTo(2), (Range{0, 2}));
  EXPECT_FALSE(low_);
  EXPECT_EQ(cursor_.TakeUpTo(100), (Range{2, 10}));
  EXPECT_TRUE(low_);
  EXPECT_TRUE(cursor_.TakeUpTo(1).empty());
}

TEST_F(RangeCursorTest, UnloadReturnsTheRest) {
  cursor_.Load({0, 10}, 1);
  One();
  EXPECT_EQ(cursor_.Unload(), (Range{1, 10}));
  EXPECT_EQ(One(), -1);
  EXPECT_TRUE(cursor_.Unload().empty());
  cursor_.Load({50, 60}, 1);
  EXPECT_EQ(One(), 50);
}

TEST_F(RangeCursorTest, HoldsTheLargestRangeAtTheEndOfAllNumbers) {
  cursor_.Load({kRangeEnd - RangeCursor::kSizeMax, kRangeEnd}, 1);
  EXPECT_EQ(One(), kRangeEnd - RangeCursor::kSizeMax);
  EXPECT_EQ(cursor_.TakeUpTo(RangeCursor::kSizeMax).end, kRangeEnd);
}

TEST_F(RangeCursorTest, AbortsIfARangeIsLoadedOverAnother) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked child's cursor is empty
  cursor_.Load({0, 10}, 1);
  EXPECT_DEATH(cursor_.Load({20, 30}, 1), "not used up");
}

// Ranges [100, 110), [200, 210), ...; the previous one is discarded each time.
void LoadNth(RangeCursor& cursor, int64_t nth) {
  cursor.Unload();
  cursor.Load({nth * 100, nth * 100 + 10}, 1);
}

TEST_F(RangeCursorTest, ACallDelayedAfterTakingKeepsItsNumberWhileItsRangeIsKnown) {
  for (const int64_t switches : {1, 2, 15}) {
    LoadNth(cursor_, 1);
    SleepyCaller caller(cursor_);
    caller.Look();
    caller.Take();
    for (int64_t i = 0; i < switches; ++i) LoadNth(cursor_, 2 + i);
    EXPECT_EQ(caller.Finish(), 100) << switches;
  }
  EXPECT_EQ(cursor_.lost(), 0);
}

TEST_F(RangeCursorTest, ACallDelayedUntilItsSlotIsReusedLosesTheNumber) {
  LoadNth(cursor_, 1);
  SleepyCaller caller(cursor_);
  caller.Look();
  caller.Take();
  for (int64_t i = 0; i < 16; ++i) LoadNth(cursor_, 2 + i);
  EXPECT_EQ(caller.Finish(), -1);
  EXPECT_EQ(cursor_.lost(), 1);
}

TEST_F(RangeCursorTest, ACallDelayedBeforeTakingGetsOnlyANumberOfTheNextRange) {
  for (const int64_t switches : {1, 2, 15, 16, 17, 32}) {
    LoadNth(cursor_, 1);
    SleepyCaller caller(cursor_);
    caller.Look();
    const int64_t lost = cursor_.lost();
    for (int64_t i = 0; i < switches; ++i) LoadNth(cursor_, 2 + i);
    caller.Take();
    EXPECT_EQ(caller.Finish(), switches == 1 ? 200 : -1) << switches;
    EXPECT_EQ(cursor_.lost() - lost, switches == 1 ? 0 : 1) << switches;
    EXPECT_EQ(One(), (1 + switches) * 100 + 1) << "the delayed call has taken the first number";
  }
}

// A call that is delayed before taking, while the rest of the range is given back, gets none of it.
TEST_F(RangeCursorTest, ACallDelayedDuringAnUnloadGetsNoneOfTheRest) {
  LoadNth(cursor_, 1);
  SleepyCaller before(cursor_), after(cursor_);
  before.Look();
  after.Look();
  before.Take();
  EXPECT_EQ(cursor_.Unload(), (Range{101, 110}));
  after.Take();
  EXPECT_EQ(before.Finish(), 100) << "this number is below the rest";
  EXPECT_EQ(after.Finish(), -1);
}

// A thread that finds no numbers loads the next tiny range of one sequence. All threads together
// get each number once, except counted lost ones, and the numbers of each thread rise.
TEST_F(RangeCursorTest, ManyThreadsShareManyTinyRanges) {
  constexpr int64_t kNumbers = 200'000;
  constexpr int kTakers = 4;
  std::vector<std::atomic<uint8_t>> got(kNumbers);
  std::mutex mutex;
  int64_t next = 0;
  const auto work = [&] {
    int64_t last = -1;
    for (int turn = 0;; ++turn) {
      int64_t number = 0;
      Range range;
      if (turn % 3 == 0) {
        range = cursor_.TakeUpTo(3);
      } else if (cursor_.TakeOne(&number)) {
        range = {number, number + 1};
      }
      for (int64_t i = range.begin; i < range.end; ++i) {
        EXPECT_GT(i, last);
        last = i;
        EXPECT_EQ(got[static_cast<size_t>(i)].fetch_add(1), 0) << i << " was issued twice";
      }
      if (!range.empty()) continue;
      const std::lock_guard lock(mutex);
      if (cursor_.left() > 0) continue;
      if (next == kNumbers) return;
      const int64_t end = std::min(kNumbers, next + 1 + next % 7);
      cursor_.Load({next, end}, 1);
      next = end;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < kTakers; ++i) threads.emplace_back(work);
  threads.clear();
  int64_t missing = 0;
  for (const auto& one : got) missing += one == 0 ? 1 : 0;
  EXPECT_EQ(missing, cursor_.lost());
}

}  // namespace
}  // namespace firn
