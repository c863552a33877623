#include "client/fleet/balancer.h"

#include <array>
#include <functional>
#include <map>
#include <queue>
#include <vector>

#include <gtest/gtest.h>

namespace firn::client {
namespace {

constexpr uint64_t kSeed = 20240117;

std::vector<Load> Idle(std::initializer_list<double> weights) {
  std::vector<Load> loads;
  for (const double weight : weights) loads.push_back({loads.size() + 1, weight, 100, 0});
  return loads;
}

// The share of `picks` that each server got, with nothing in flight.
std::vector<double> SharesOf(Balancing kind, const std::vector<Load>& loads, int picks = 30'000) {
  SeededEntropy entropy(kSeed);
  const auto balancer = MakeBalancer(kind);
  std::vector<double> shares(loads.size());
  for (int i = 0; i < picks; ++i) shares[balancer->Pick(loads, entropy)] += 1.0 / picks;
  return shares;
}

// Calls of `callers` who each ask again when answered; a server takes `service_us` for each call,
// and calls at one server do not wait for each other. The share of calls that each server got.
std::vector<double> SharesInUse(std::vector<Load> loads, const std::vector<double>& service_us,
                                int callers, int calls = 30'000) {
  using End = std::pair<double, size_t>;
  SeededEntropy entropy(kSeed);
  const auto balancer = MakeBalancer(Balancing::kP2c);
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<double> shares(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) loads[i].latency_us = service_us[i];
  double now = 0;
  for (int i = 0; i < calls; ++i) {
    if (i >= callers) {
      now = ends.top().first;
      --loads[ends.top().second].in_flight;
      ends.pop();
    }
    const size_t picked = balancer->Pick(loads, entropy);
    ++loads[picked].in_flight;
    shares[picked] += 1.0 / calls;
    const double jitter = 0.8 + static_cast<double>(entropy.Below(400)) / 1000;
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
  SeededEntropy entropy(kSeed);
  const auto balancer = MakeBalancer(Balancing::kRoundRobin);
  const std::vector<Load> loads = Idle({5, 1, 1});
  std::string turns;
  for (int i = 0; i < 7; ++i) turns += static_cast<char>('a' + balancer->Pick(loads, entropy));
  EXPECT_EQ(turns, "aabacaa");
}

TEST(StickyTest, StaysUntilTheServerIsOfferedNoMore) {
  SeededEntropy entropy(kSeed);
  const auto balancer = MakeBalancer(Balancing::kSticky);
  std::vector<Load> loads = Idle({100, 100, 100});
  const uint64_t kept = loads[balancer->Pick(loads, entropy)].server;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(loads[balancer->Pick(loads, entropy)].server, kept);
  std::erase_if(loads, [kept](const Load& load) { return load.server == kept; });
  const uint64_t next = loads[balancer->Pick(loads, entropy)].server;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(loads[balancer->Pick(loads, entropy)].server, next);
}

}  // namespace
}  // namespace firn::client
