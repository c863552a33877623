#include "client/lease/leased_ids.h"

#include <algorithm>
#include <stop_token>
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

TEST_F(LeasedIdsTest, RefusesTermsUnderWhichNoIdMayBeIssued) {
  const auto spoilt = [&](auto spoil) {
    LeaseGrant terms = Terms(7, clock_.Wall(), kAnHour);
    spoil(terms);
    return ids_.Adopt(terms).message();
  };
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.lease.clear(); }), "a lease without a name");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.machine = MachineId(8); }),
            "base bits of another machine id than 8");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.machine = MachineId(1'024); }),
            "machine id 1024 does not fit into layout firn");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.base_bits |= 1; }),
            "base bits in the time or sequence field");
  EXPECT_EQ(spoilt([](LeaseGrant& t) { t.sequence_count = 1'024; }),
            "a lease of a part of the sequence, which this version does not support");
  EXPECT_NE(spoilt([](LeaseGrant& t) { t.until = t.from; }), "");
  EXPECT_FALSE(TryNext().ok());
}

// The thread uses another generator in between.
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

// Leases replace each other while threads take ids. No id may be duplicated, and each thread's ids
// must rise.
TEST(LeasedIdsThreadsTest, IdsRiseWhileLeasesReplaceEachOther) {
  LeasedIds ids(SystemClock(), SystemEntropy());
  std::vector<std::vector<int64_t>> taken(3);
  std::vector<std::jthread> threads;
  for (auto& mine : taken) {
    threads.emplace_back([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        std::chrono::microseconds wait{0};
        const Result<int64_t> id = ids.TryNext(&wait);
        if (id.ok() && mine.size() < 300'000) mine.push_back(id.value_or(0));
      }
    });
  }
  for (uint32_t lease = 0; lease < 60; ++lease) {
    // Each lease has a lower machine id than the last one, and the intervals overlap. A pause of
    // the machine can outlast the interval: the next one has the same machine id.
    LeaseGrant terms;
    Status adopted;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const WallMs from = SystemClock().Wall() - Milliseconds(1'000);
      terms = Terms(900 - lease, from, Milliseconds(1'003));
      adopted = ids.Adopt(terms);
      if (adopted.ok()) break;
    }
    ASSERT_EQ(adopted, Status());
    SleepFor(std::chrono::milliseconds(2));
    ids.ExtendTo(terms.until + 10'000);
    SleepFor(std::chrono::milliseconds(2));
    if (lease % 7 == 0) ids.Close(Unavailable("closed for a moment"));
  }
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
