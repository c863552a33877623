#include "server/issue/snowflake/snowflake_lanes.h"

#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr int64_t kTickIds = 4096;

// Lanes on one clock that the test moves. Lane i holds machine id 10 - i, so that a caller that
// moves to the next lane within a tick gets lower ids.
class SnowflakeLanesTest : public testing::Test {
 protected:
  SnowflakeLanesTest() {
    std::vector<std::shared_ptr<Snowflake>> lanes;
    for (int i = 0; i < 3; ++i)
      lanes.push_back(std::make_shared<Snowflake>(ticks_, entropy_, kZero));
    lanes_ = lanes;
    all_ = std::make_unique<SnowflakeLanes>(std::move(lanes));
    EXPECT_EQ(all_->Start(), Status());
  }

  void Hold(size_t lane, Milliseconds length = Milliseconds(600'000)) {
    auto claim = std::make_shared<Claim>(layout_, MachineIn(lane), clock_.Wall());
    claim->ExtendTo(clock_.Wall() + length);
    EXPECT_EQ(lanes_[lane]->Adopt(claim), Status());
  }
  void HoldAll() {
    for (size_t lane = 0; lane < lanes_.size(); ++lane) Hold(lane);
  }
  static MachineId MachineIn(size_t lane) { return MachineId(static_cast<uint32_t>(10 - lane)); }

  MachineId MachineOf(int64_t id) const { return layout_.Unpack(id)->machine; }
  Tick TickOf(int64_t id) const { return layout_.Unpack(id)->tick; }
  int64_t One() {
    int64_t id = 0;
    EXPECT_TRUE(all_->TryOne(Method::kEmbedded, &id));
    return id;
  }
  MachineId Own() { return MachineOf(One()); }

  Verdict Ask(int64_t count) {
    call_.Begin({.count = count});
    return all_->Issue(call_);
  }
  void ExpectRising() {
    int64_t before = -1;
    call_.runs().ForEach([&](int64_t id) {
      ASSERT_GT(id, before);
      before = id;
    });
  }

  static constexpr SnowflakeOptions kZero{.sequencer = {.start = SequenceStart::kZero}};
  const Layout layout_ = Layout::Firn();
  VirtualClock clock_{layout_.epoch() + Milliseconds(1'000'000'000)};
  IdClock id_clock_;
  TickSource ticks_{layout_, id_clock_, clock_, /*use_cycles=*/false};
  SeededEntropy entropy_{11};
  std::vector<std::shared_ptr<Snowflake>> lanes_;
  std::unique_ptr<SnowflakeLanes> all_;
  IssueCall call_;
};

TEST_F(SnowflakeLanesTest, AThreadKeepsToItsOwnLane) {
  HoldAll();
  const MachineId own = Own();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Own(), own);
  ASSERT_EQ(Ask(1'000), Verdict::kIssued);
  EXPECT_EQ(call_.runs().size(), 1u);
  EXPECT_EQ(MachineOf(call_.runs()[0].first), own);
}

TEST_F(SnowflakeLanesTest, AsManyThreadsAsLanesUseOneEach) {
  HoldAll();
  std::mutex mutex;
  std::set<MachineId> machines;
  std::latch all_there(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      int64_t id = 0;
      EXPECT_TRUE(all_->TryOne(Method::kEmbedded, &id));
      {
        const std::scoped_lock lock(mutex);
        machines.insert(MachineOf(id));
      }
      all_there.arrive_and_wait();  // so that no thread's number is reused meanwhile
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(machines.size(), 3u);
}

TEST_F(SnowflakeLanesTest, IssuesTheIdsOfAllLanesInATick) {
  HoldAll();
  std::set<int64_t> ids;
  for (int64_t i = 0; i < 3 * kTickIds; ++i) ids.insert(One());
  EXPECT_EQ(ids.size(), 3u * kTickIds);
  int64_t none = 0;
  EXPECT_FALSE(all_->TryOne(Method::kEmbedded, &none));
  EXPECT_EQ(Ask(1), Verdict::kWait);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded);
  clock_.Advance(Milliseconds(1));
  EXPECT_EQ(all_->Issue(call_), Verdict::kIssued);
}

TEST_F(SnowflakeLanesTest, IssuesRunsOfAllLanesInATick) {
  HoldAll();
  std::map<MachineId, int64_t> counts;
  IdRun run{};
  while (all_->TryRun(Method::kEmbedded, 1'000, &run)) counts[MachineOf(run.first)] += run.count;
  ASSERT_EQ(counts.size(), 3u);
  for (const auto& [machine, count] : counts) EXPECT_EQ(count, kTickIds);
}

TEST_F(SnowflakeLanesTest, ACallUsesOneLaneAndItsIdsRise) {
  HoldAll();
  ASSERT_EQ(Ask(kTickIds - 5), Verdict::kIssued);
  const MachineId own = MachineOf(call_.runs()[0].first);
  ASSERT_EQ(Ask(10), Verdict::kWait) << "five are available, the others belong to the next tick";
  EXPECT_EQ(call_.runs().count(), 5);
  clock_.Advance(Milliseconds(1));
  ASSERT_EQ(all_->Issue(call_), Verdict::kIssued);
  ASSERT_EQ(call_.runs().size(), 2u);
  EXPECT_EQ(MachineOf(call_.runs()[0].first), own);
  EXPECT_EQ(MachineOf(call_.runs()[1].first), own);
  ExpectRising();
}

TEST_F(SnowflakeLanesTest, AWaitingCallDoesNotBlockOthersFromTheNextLane) {
  HoldAll();
  ASSERT_EQ(Ask(kTickIds + 1), Verdict::kWait);
  const MachineId own = MachineOf(call_.place->runs[0].first);
  EXPECT_NE(Own(), own);
}

TEST_F(SnowflakeLanesTest, ALostClaimStopsOnlyItsOwnLane) {
  HoldAll();
  const MachineId own = Own();
  const size_t lane = 10 - own.value();
  EXPECT_TRUE(lanes_[lane]->CloseClaim().has_value());
  EXPECT_NE(Own(), own);
  EXPECT_EQ(Ask(1'000), Verdict::kIssued);
  EXPECT_FALSE(all_->WhyNot().has_value());
  Hold(lane);
  EXPECT_EQ(Own(), own);
}

TEST_F(SnowflakeLanesTest, ACallWhoseLaneIsLostIsServedByAnotherAndStillRises) {
  HoldAll();
  ASSERT_EQ(Ask(kTickIds + 1), Verdict::kWait);
  const size_t lane = 10 - MachineOf(call_.place->runs[0].first).value();
  EXPECT_TRUE(lanes_[lane]->CloseClaim().has_value());
  ASSERT_EQ(all_->Issue(call_), Verdict::kWait);
  clock_.Advance(Milliseconds(1));
  ASSERT_EQ(all_->Issue(call_), Verdict::kIssued);
  EXPECT_EQ(call_.runs().count(), kTickIds + 1);
  ExpectRising();
}

TEST_F(SnowflakeLanesTest, RefusesOnlyIfAllLanesRefuse) {
  EXPECT_EQ(Ask(1), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kNotReady);
  ASSERT_TRUE(all_->WhyNot().has_value());
  EXPECT_EQ(all_->WhyNot()->reason, Reason::kNotReady);
  for (size_t lane = 0; lane < lanes_.size(); ++lane) {
    Hold(lane, Milliseconds(50));
    EXPECT_EQ(Ask(1), Verdict::kIssued);
    EXPECT_FALSE(all_->WhyNot().has_value());
    clock_.Advance(Milliseconds(60));
    EXPECT_EQ(Ask(1), Verdict::kRefused);
    EXPECT_TRUE(all_->WhyNot().has_value());
  }
}

TEST_F(SnowflakeLanesTest, UsesALaneInWhichALargeCallFits) {
  Hold(0, Milliseconds(5));
  Hold(1, Milliseconds(5));
  Hold(2);
  EXPECT_EQ(Ask(20 * kTickIds), Verdict::kWait);
  EXPECT_EQ(MachineOf(call_.place->runs[0].first), MachineIn(2));
}

TEST_F(SnowflakeLanesTest, ALaterCallGetsNoEarlierTick) {
  HoldAll();
  Tick highest;
  for (int i = 0; i < 20'000; ++i) {
    if (i % 3'000 == 0) clock_.Advance(Milliseconds(1));
    const Tick tick = TickOf(One());
    ASSERT_GE(tick, highest);
    highest = tick;
  }
}

TEST_F(SnowflakeLanesTest, IssuesNothingAfterClose) {
  HoldAll();
  all_->Close();
  int64_t id = 0;
  EXPECT_FALSE(all_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(Ask(1), Verdict::kRefused);
}

// Threads take all ids that there are while claims change.
TEST_F(SnowflakeLanesTest, NoIdIsIssuedTwiceByThreadsWhileClaimsChange) {
  HoldAll();
  std::vector<std::vector<int64_t>> taken(4);
  std::atomic<bool> ended{false};
  std::vector<std::thread> threads;
  for (auto& ids : taken) {
    threads.emplace_back([&] {
      int64_t id = 0;
      IssueCall call;
      while (!ended) {
        if (all_->TryOne(Method::kEmbedded, &id)) ids.push_back(id);
        call.Begin({.count = 7});
        if (all_->Issue(call) == Verdict::kIssued) {
          call.runs().ForEach([&](int64_t one) { ids.push_back(one); });
        }
      }
    });
  }
  for (int i = 0; i < 60; ++i) {
    const auto lane = static_cast<size_t>(i) % lanes_.size();
    const std::optional<Tick> last = lanes_[lane]->CloseClaim();
    clock_.Advance(Milliseconds(2));
    ASSERT_TRUE(last.has_value());
    auto claim = std::make_shared<Claim>(layout_, MachineIn(lane), layout_.StartOf(*last + 1));
    claim->ExtendTo(clock_.Wall() + Milliseconds(600'000));
    ASSERT_EQ(lanes_[lane]->Adopt(claim), Status());
    std::this_thread::yield();
  }
  ended = true;
  for (std::thread& thread : threads) thread.join();
  std::set<int64_t> ids;
  size_t count = 0;
  for (const auto& of_one : taken) {
    ids.insert(of_one.begin(), of_one.end());
    count += of_one.size();
  }
  EXPECT_EQ(ids.size(), count);
}

}  // namespace
}  // namespace firn
