#include "client/fleet/balancer.h"

#include <atomic>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace firn::client {
namespace {

constexpr uint64_t kSeed = 20240117;

// One server that may be picked, or not.
struct Load {
  int64_t weight;
  double latency_us = 100;
  int in_flight = 0;
  bool offered = true;
};

std::vector<Load> Idle(std::initializer_list<int64_t> weights) {
  std::vector<Load> loads;
  for (const int64_t weight : weights) loads.push_back({.weight = weight});
  return loads;
}

// A balancer and the servers that it picks from.
class Picks final : public Balancer::Servers {
 public:
  Picks(Balancing kind, std::vector<Load> of) : loads(std::move(of)) {
    std::vector<int64_t> weights;
    for (const Load& load : loads) weights.push_back(load.weight);
    balancer_ = MakeBalancer(kind, weights, turn_);
  }
  size_t Pick() { return balancer_->Pick(*this, entropy); }

  bool MayPick(size_t at) const override { return loads[at].offered; }
  double LatencyUs(size_t at) const override { return loads[at].latency_us; }
  int InFlight(size_t at) const override { return loads[at].in_flight; }

  std::vector<Load> loads;
  SeededEntropy entropy{kSeed};

 private:
  std::atomic<uint64_t> turn_ = 0;
  std::unique_ptr<const Balancer> balancer_;
};

// The share of `picks` that each server got, with nothing in flight.
std::vector<double> SharesOf(Balancing kind, const std::vector<Load>& loads, int picks = 30'000) {
  Picks from(kind, loads);
  std::vector<double> shares(loads.size());
  for (int i = 0; i < picks; ++i) shares[from.Pick()] += 1.0 / picks;
  return shares;
}

// Calls of `callers` who each ask again when answered; a server takes `service_us` for each call,
// and calls at one server do not wait for each other. The share of calls that each server got.
std::vector<double> SharesInUse(std::vector<Load> loads, const std::vector<double>& service_us,
                                int callers, int calls = 30'000) {
  using End = std::pair<double, size_t>;
  Picks from(Balancing::kP2c, std::move(loads));
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<double> shares(service_us.size());
  for (size_t i = 0; i < service_us.size(); ++i) from.loads[i].latency_us = service_us[i];
  double now = 0;
  for (int i = 0; i < calls; ++i) {
    if (i >= callers) {
      now = ends.top().first;
      --from.loads[ends.top().second].in_flight;
      ends.pop();
    }
    const size_t picked = from.Pick();
    ++from.loads[picked].in_flight;
    shares[picked] += 1.0 / calls;
    const double jitter = 0.8 + static_cast<double>(from.entropy.Below(400)) / 1000;
    ends.push({now + service_us[picked] * jitter, picked});
  }
  return shares;
}

void ExpectShares(const std::vector<double>& shares, const std::vector<double>& expected) {
  for (size_t i = 0; i < shares.size(); ++i) {
    EXPECT_NEAR(shares[i], expected[i], expected[i] * 0.1) << "server " << i;
  }
}

class EveryBalancer : public testing::TestWithParam<Balancing> {};

TEST_P(EveryBalancer, SpreadsEvenlyOverEqualServers) {
  ExpectShares(SharesOf(GetParam(), Idle({100, 100, 100})), {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_P(EveryBalancer, FollowsWeights) {
  ExpectShares(SharesOf(GetParam(), Idle({300, 200, 100})), {0.5, 1.0 / 3, 1.0 / 6});
}

TEST_P(EveryBalancer, TakesTheOnlyOneThereIs) {
  ExpectShares(SharesOf(GetParam(), Idle({7})), {1});
}

INSTANTIATE_TEST_SUITE_P(Balancer, EveryBalancer,
                         testing::Values(Balancing::kP2c, Balancing::kRoundRobin,
                                         Balancing::kRandom));

TEST(P2cTest, SpreadsEvenlyWhenServersAreBusy) {
  ExpectShares(SharesInUse(Idle({100, 100, 100}), {100, 100, 100}, 24),
               {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(P2cTest, FollowsWeightsWhenServersAreBusy) {
  ExpectShares(SharesInUse(Idle({200, 100, 100}), {100, 100, 100}, 32), {0.5, 0.25, 0.25});
}

TEST(P2cTest, GivesASlowServerLess) {
  const auto shares = SharesInUse(Idle({100, 100, 100}), {100, 100, 1000}, 24);
  EXPECT_LT(shares[2], 0.12);
  EXPECT_GT(shares[0], 0.38);
}

TEST(P2cTest, AsksServersOfUnknownLatencyLikeTheOthers) {
  std::vector<Load> loads = Idle({100, 100});
  loads[1].latency_us = 0;
  ExpectShares(SharesOf(Balancing::kP2c, loads), {0.5, 0.5});
}

TEST(RoundRobinTest, NeverGoesToOneServerInARowWhereItCanDoOtherwise) {
  Picks from(Balancing::kRoundRobin, Idle({5, 1, 1}));
  std::string turns;
  for (int i = 0; i < 7; ++i) turns += static_cast<char>('a' + from.Pick());
  EXPECT_EQ(turns, "aabacaa");
}

TEST(StickyTest, TakesTheFirstThatMayBePicked) {
  Picks from(Balancing::kSticky, Idle({100, 100, 100}));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(from.Pick(), 0u);
  from.loads[0].offered = false;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(from.Pick(), 1u);
}

// --- those that may not be picked ---------------------------------------------------------------

class Restrained : public testing::TestWithParam<Balancing> {};

TEST_P(Restrained, PicksAmongTheOthersAsIfThereWereNoMore) {
  std::vector<Load> loads = Idle({100, 100, 200, 400, 400, 400, 400, 400});
  for (size_t i = 3; i < loads.size(); ++i) loads[i].offered = false;
  const auto shares = SharesOf(GetParam(), loads);
  for (size_t i = 3; i < loads.size(); ++i) EXPECT_EQ(shares[i], 0) << i;
  ExpectShares({shares[0], shares[1], shares[2]}, {0.25, 0.25, 0.5});
}

TEST_P(Restrained, PicksNoneWhenNoneMayBePicked) {
  std::vector<Load> loads = Idle({100, 100});
  for (Load& load : loads) load.offered = false;
  EXPECT_EQ(Picks(GetParam(), loads).Pick(), Balancer::kNone);
  EXPECT_EQ(Picks(GetParam(), {}).Pick(), Balancer::kNone);
}

// A pick that looked at all of them would take longer with every server.
class Counted final : public Balancer::Servers {
 public:
  bool MayPick(size_t) const override { return ++looks > 0; }
  double LatencyUs(size_t) const override { return ++looks; }
  int InFlight(size_t) const override { return ++looks; }
  mutable int looks = 0;
};

TEST_P(Restrained, LooksAtAFewServersHoweverManyThereAre) {
  const std::vector<int64_t> weights(1000, 100);
  std::atomic<uint64_t> turn = 0;
  SeededEntropy entropy(kSeed);
  const auto balancer = MakeBalancer(GetParam(), weights, turn);
  for (int i = 0; i < 1000; ++i) {
    Counted servers;
    balancer->Pick(servers, entropy);
    EXPECT_LE(servers.looks, 8);
  }
}

INSTANTIATE_TEST_SUITE_P(Balancer, Restrained,
                         testing::Values(Balancing::kP2c, Balancing::kRandom));

TEST(LotsTest, DrawEachAsOftenAsItsWeightSays) {
  SeededEntropy seeds(kSeed);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> weights, shares;
    double total = 0;
    for (uint64_t i = 0; i <= seeds.Below(40); ++i) {
      weights.push_back(static_cast<double>(1 + seeds.Below(50)));
      total += weights.back();
    }
    const Lots lots(weights);
    shares.resize(weights.size());
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) {
      shares[lots.Draw([](size_t) { return true; }, seeds)] += 1.0 / kDraws;
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(shares[i], weights[i] / total, 0.006) << i;
    }
  }
}

}  // namespace
}  // namespace firn::client
