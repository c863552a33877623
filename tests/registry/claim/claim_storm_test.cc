// Tests many servers that claim a machine id at the same time. The time is virtual, so that the
// requests to the registry can be counted.

#include <algorithm>
#include <array>
#include <cstdio>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr Milliseconds kStep{10};
constexpr Milliseconds kAtMost{20'000};

class ClaimStormTest : public ClaimKeeperTest {
 protected:
  // Starts servers. Each of their requests takes up to 40 ms.
  void StartCrowd(uint32_t crowd) {
    for (uint32_t i = 0; i < crowd; ++i) {
      hosts_.push_back(Start(disks_.emplace_back(), Options("h" + std::to_string(i))));
      hosts_.back()->link().SetPlan([this](Verb verb) {
        ++asked_[static_cast<size_t>(verb)];
        const auto half = [this] { return Milliseconds(static_cast<int64_t>(entropy_.Below(20))); };
        return Fate{Fate::Kind::kDone, half(), half()};
      });
    }
  }
  size_t Served() {
    return static_cast<size_t>(std::count_if(
        hosts_.begin(), hosts_.end(), [](const auto& host) { return host->user().has_claim(); }));
  }
  // Returns the time until all claimants hold a machine id.
  Milliseconds RunUntilServed() {
    Milliseconds passed{0};
    for (; passed < kAtMost && Served() < hosts_.size(); passed += kStep) {
      clock_.Advance(kStep);
      for (const auto& host : hosts_) host->Step();
    }
    return passed;
  }
  int64_t Asked(Verb verb) const { return asked_[static_cast<size_t>(verb)]; }
  // Returns the number of tries. Each try begins with a write of the clock node.
  int64_t Tries() { return tree_.Peek(kClockPath)->stat.version; }
  void Report(const char* what, Milliseconds time) {
    std::printf("%s: %lld ms, %lld tries, %lld writes, %lld reads\n", what,
                static_cast<long long>(time.count()), static_cast<long long>(Tries()),
                static_cast<long long>(Asked(Verb::kMulti)),
                static_cast<long long>(Asked(Verb::kRead)));
  }

  std::list<MemoryDisk> disks_;
  std::vector<std::unique_ptr<ClaimHost>> hosts_;
  std::array<int64_t, 4> asked_{};
};

TEST_F(ClaimStormTest, EachClaimantGetsOneOfAsManyUnusedSlots) {
  MakeClusterWith(256);
  StartCrowd(256);
  const Milliseconds time = RunUntilServed();
  Report("256 slots never used", time);
  EXPECT_EQ(Served(), hosts_.size());
}

TEST_F(ClaimStormTest, EachClaimantGetsOneOfAsManyUsedSlots) {
  MakeClusterWith(64);
  for (uint32_t worker = 0; worker < 64; ++worker) {
    SlotRecord record{.nonce = Nonce(worker + 1, 1),
                      .bound = clock_.Wall() - Milliseconds(1'000 + worker)};
    record.owner = "gone";
    Write1(SlotPath({0, worker}), FormatSlotRecord(record));
  }
  StartCrowd(64);
  const Milliseconds time = RunUntilServed();
  Report("64 slots used long ago", time);
  EXPECT_EQ(Served(), hosts_.size());
}

}  // namespace
}  // namespace firn
