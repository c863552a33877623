#include "client/lease/leased_ids.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

LeaseGrant Terms(uint32_t machine, WallMs from, Milliseconds length,
                 const Layout& layout = Layout::Firn()) {
  LeaseGrant terms;
  terms.lease = "a lease";
  terms.layout = layout;
  terms.machine = MachineId(machine);
  terms.base_bits = layout.BaseBits(terms.machine, 0);
  terms.sequence_count = layout.ids_per_tick();
  terms.from = layout.FirstTickFrom(from);
  terms.until = layout.TickAt(from + length);
  return terms;
}

class LeasedIdsTest : public testing::Test {
 protected:
  Result<int64_t> TryNext() { return ids_.TryNext(&wait_); }

  VirtualClock clock_{At("2026-11-26T12:00:00Z")};
  SeededEntropy entropy_{3};
  LeasedIds ids_{clock_, entropy_, /*use_cycles=*/false};
  std::chrono::microseconds wait_{0};
};

TEST_F(LeasedIdsTest, SaysWhenTheNextTickBeginsIfTheSequenceIsUsedUp) {
  ASSERT_EQ(ids_.Adopt(Terms(7, clock_.Wall(), kAnHour)), Status());
  int64_t taken = 0;
  while (TryNext().ok()) ++taken;
  EXPECT_GE(taken, 2'048);  // a tick's sequence begins in its lower half
  EXPECT_LE(taken, 4'096);
  EXPECT_GT(wait_.count(), 0);
  EXPECT_LE(wait_, std::chrono::milliseconds(1));
  clock_.Advance(kMs);
  EXPECT_TRUE(TryNext().ok());
  ids_.Close(Unavailable("closed by the test"));
  EXPECT_EQ(TryNext().status(), Unavailable("closed by the test"));
  EXPECT_EQ(wait_.count(), 0);
}

TEST_F(LeasedIdsTest, RefusesALeaseOfAnotherLayoutAndKeepsTheCurrentOne) {
  ASSERT_EQ(ids_.Adopt(Terms(7, clock_.Wall(), kAnHour)), Status());
  EXPECT_EQ(ids_.Adopt(Terms(8, clock_.Wall(), kAnHour, Layout::Twitter())).code(), Code::kInvalid);
  EXPECT_TRUE(TryNext().ok());
  EXPECT_EQ(ids_.interval()->machine, MachineId(7));
}

TEST_F(LeasedIdsTest, AnEarlierEndChangesNothing) {
  const LeaseGrant terms = Terms(7, clock_.Wall(), kAnHour);
  ASSERT_EQ(ids_.Adopt(terms), Status());
  ids_.ExtendTo(terms.from + 1);
  clock_.Advance(kAnHour - kMs);
  EXPECT_TRUE(TryNext().ok());
  clock_.Advance(kMs);
  EXPECT_FALSE(TryNext().ok());
  ids_.ExtendTo(terms.until + 1);
  EXPECT_TRUE(TryNext().ok());
}

TEST_F(LeasedIdsTest, AClockThatHasPassedTheIntervalReturnsAtTheNextExtension) {
  const LeaseGrant terms = Terms(7, clock_.Wall(), Milliseconds(1'000));
  ASSERT_EQ(ids_.Adopt(terms), Status());
  const Result<int64_t> before = TryNext();
  ids_.RaiseClockTo(clock_.Wall() + kAnHour);
  EXPECT_FALSE(TryNext().ok());
  clock_.Advance(Milliseconds(1'000));
  ids_.ExtendTo(terms.until + 2'000);
  const Result<int64_t> after = TryNext();
  ASSERT_EQ(after.status(), Status());
  EXPECT_GT(*after, *before);
  EXPECT_EQ(static_cast<int64_t>(terms.layout.time().In(static_cast<uint64_t>(*after))),
            terms.from.count() + 1'000);
}

// Also by a thread that uses another generator in between.
TEST_F(LeasedIdsTest, AdoptsLeasesWithoutLimit) {
  LeasedIds another{clock_, entropy_, /*use_cycles=*/false};
  ASSERT_EQ(another.Adopt(Terms(9, clock_.Wall(), kAnHour)), Status());
  for (uint32_t lease = 0; lease < 120'000; ++lease) {
    ASSERT_EQ(ids_.Adopt(Terms(lease % 2, clock_.Wall(), kAnHour)), Status());
    const Result<int64_t> id = TryNext();
    ASSERT_EQ(id.status(), Status());
    ASSERT_EQ(Layout::Firn().machine().In(static_cast<uint64_t>(*id)), lease % 2);
    if (lease % 1'000 == 0) {
      ASSERT_TRUE(another.TryNext(&wait_).ok());
    }
    clock_.Advance(kMs);
  }
}

TEST_F(LeasedIdsTest, LayoutsWithTicksOfASecond) {
  const Layout layout = Layout::Parse("time:31s machine:10 sequence:4").value();
  clock_.Advance(Milliseconds(300));
  ASSERT_EQ(ids_.Adopt(Terms(7, clock_.Wall(), kAnHour, layout)), Status());
  const Result<int64_t> id = TryNext();
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(layout.Unpack(id.value_or(0)).value().machine, MachineId(7));
  EXPECT_EQ(layout.Unpack(id.value_or(0)).value().tick, layout.FirstTickFrom(clock_.Wall()));
}

// Leases replace each other while threads take ids: no id twice, and each thread's ids rise.
TEST(LeasedIdsThreadsTest, IdsRiseWhileLeasesReplaceEachOther) {
  LeasedIds ids(SystemClock(), SystemEntropy());
  std::atomic<bool> done{false};
  std::vector<std::vector<int64_t>> taken(3);
  std::vector<std::jthread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&] {
      while (!done) {
        std::chrono::microseconds wait{0};
        const Result<int64_t> id = ids.TryNext(&wait);
        if (id.ok() && mine.size() < 300'000) mine.push_back(id.value_or(0));
      }
    });
  }
  for (uint32_t lease = 0; lease < 60; ++lease) {
    // The machine ids fall, and the intervals overlap.
    const WallMs from = SystemClock().Wall() - Milliseconds(1'000);
    LeaseGrant terms = Terms(900 - lease, from, Milliseconds(1'003));
    ASSERT_EQ(ids.Adopt(terms), Status());
    SleepFor(std::chrono::milliseconds(2));
    ids.ExtendTo(terms.until + 10'000);
    SleepFor(std::chrono::milliseconds(2));
    if (lease % 7 == 0) ids.Close(Unavailable("closed for a moment"));
  }
  done = true;
  threads.clear();

  std::vector<int64_t> all;
  for (const auto& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end()));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  EXPECT_GT(all.size(), 1'000u);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
}

}  // namespace
}  // namespace firn
