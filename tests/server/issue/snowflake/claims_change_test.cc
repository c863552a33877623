// Eight threads take ids while the claims under them change: the same slot again, other slots,
// slots lost for a while, each closed during calls. An oracle checks every id.

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/snowflake/snowflake.h"
#include "tests/server/issue/snowflake/id_oracle.h"

namespace firn {
namespace {

constexpr int kThreads = 8;
constexpr int kClaims = 60;
// A claim is closed after this many calls, during others; the threads make at most this many more
// before they wait for the next claim.
constexpr int64_t kCallsPerClaim = 100;
constexpr int64_t kCallsBeyond = 1'000;
constexpr Milliseconds kClaimLength{400};

class ClaimsChange : public testing::TestWithParam<SequencerKind> {
 protected:
  // Takes single ids and batches until the test ends.
  void TakeUntilDone(uint64_t seed) {
    SeededEntropy random(seed);
    std::vector<int64_t> ids;
    IssueCall call;
    while (!done_) {
      if (taken_ > goal_ + kCallsBeyond) {
        std::this_thread::yield();
        continue;
      }
      int64_t id = 0;
      if (random.Below(8) > 0) {
        if (!snowflake_.TryOne(Method::kThrift, &id)) continue;
        ids.push_back(id);
      } else {
        call.Begin({.count = static_cast<int64_t>(1 + random.Below(40))});
        snowflake_.Issue(call);
        call.runs().ForEach([&](int64_t next) { ids.push_back(next); });
      }
      taken_.fetch_add(1, std::memory_order_relaxed);
    }
    const std::lock_guard lock(mutex_);
    oracle_.Saw(std::move(ids));
  }

  // Holds a slot until more ids have been taken, then gives it up.
  void HoldAndLose(uint32_t machine) {
    WallMs& base = bases_[machine];
    base = std::max(base, SystemClock().Wall());
    const auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(machine), base);
    claim->ExtendTo(base + kClaimLength);
    ASSERT_EQ(snowflake_.Adopt(claim), Status());
    goal_ = taken_ + kCallsPerClaim;
    const BootMs deadline = SystemClock().Boot() + Milliseconds(2'000);
    while (taken_ < goal_ && SystemClock().Boot() < deadline) std::this_thread::yield();
    const Tick last = snowflake_.CloseClaim().value();
    oracle_.Closed(*claim, last);
    base = Layout::Firn().StartOf(std::max(last, claim->first_tick() - 1) + 1);
  }

  IdClock id_clock_;
  TickSource ticks_{Layout::Firn(), id_clock_, SystemClock()};
  Snowflake snowflake_{ticks_, SystemEntropy(), {.sequencer = {.kind = GetParam()}}};
  std::atomic<bool> done_{false};
  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> goal_{0};
  std::mutex mutex_;
  IdOracle oracle_;
  std::array<WallMs, 3> bases_{};
};

TEST_P(ClaimsChange, NoIdIsIssuedTwiceOrOutsideItsClaim) {
  std::vector<std::jthread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] { TakeUntilDone(i); });
  }
  for (int i = 0; i < kClaims; ++i) HoldAndLose(static_cast<uint32_t>(i % 7 % 3));
  done_ = true;
  threads.clear();
  EXPECT_EQ(oracle_.Judge(), std::nullopt);
  EXPECT_GT(oracle_.size(), 1'000u);
  EXPECT_GT(oracle_.claims_used(), size_t{kClaims} / 2);
}

// The next claim is adopted while the last one is in use, without a gap.
TEST_P(ClaimsChange, AnAdoptionDuringCallsLosesNoCall) {
  std::atomic<int> refused{0};
  auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(1), SystemClock().Wall());
  claim->ExtendTo(SystemClock().Wall() + std::chrono::hours(1));
  ASSERT_EQ(snowflake_.Adopt(claim), Status());
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (!done_) {
        IssueCall call({.count = 2});
        if (snowflake_.Issue(call) == Verdict::kRefused) ++refused;
      }
    });
  }
  for (uint32_t machine = 2; machine < 200; ++machine) {
    claim = std::make_shared<Claim>(Layout::Firn(), MachineId(machine), SystemClock().Wall());
    claim->ExtendTo(SystemClock().Wall() + std::chrono::hours(1));
    ASSERT_EQ(snowflake_.Adopt(claim), Status());
  }
  done_ = true;
  threads.clear();
  EXPECT_EQ(refused, 0);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ClaimsChange,
                         testing::Values(SequencerKind::kAtomic, SequencerKind::kMutex,
                                         SequencerKind::kSpin));

}  // namespace
}  // namespace firn
