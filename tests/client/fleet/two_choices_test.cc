#include "client/fleet/two_choices.h"

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace firn::client {
namespace {

constexpr uint64_t kSeed = 20240117;

// A server that may be picked if it is `offered`.
struct Load {
  double weight;
  double latency_us = 100;
  int in_flight = 0;
  bool offered = true;
};

std::vector<Load> Idle(std::initializer_list<double> weights) {
  std::vector<Load> loads;
  for (const double weight : weights) loads.push_back({.weight = weight});
  return loads;
}

std::vector<double> WeightsOf(const std::vector<Load>& loads) {
  std::vector<double> weights;
  for (const Load& load : loads) weights.push_back(load.weight);
  return weights;
}

class Picks {
 public:
  explicit Picks(std::vector<Load> of) : loads(std::move(of)), choices_(WeightsOf(loads)) {}
  size_t Pick() { return choices_.Pick(*this, entropy); }

  bool MayPick(size_t at) const { return loads[at].offered; }
  double LatencyUs(size_t at) const { return loads[at].latency_us; }
  int InFlight(size_t at) const { return loads[at].in_flight; }

  std::vector<Load> loads;
  SeededEntropy entropy{kSeed};

 private:
  const TwoChoices choices_;
};

// Returns each server's share of `picks` while no call is in flight.
std::vector<double> SharesOf(const std::vector<Load>& loads, int picks = 30'000) {
  Picks from(loads);
  std::vector<double> shares(loads.size());
  for (int i = 0; i < picks; ++i) shares[from.Pick()] += 1.0 / picks;
  return shares;
}

// Returns each server's share of calls. Each of `callers` makes its next call as soon as the last
// one is answered. A call takes `service_us`, independently of other calls at the server.
std::vector<double> SharesInUse(std::vector<Load> loads, const std::vector<double>& service_us,
                                int callers, int calls = 30'000) {
  using End = std::pair<double, size_t>;
  Picks from(std::move(loads));
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

TEST(TwoChoicesTest, SpreadsEvenlyOverEqualServers) {
  ExpectShares(SharesOf(Idle({100, 100, 100})), {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(TwoChoicesTest, FollowsWeights) {
  ExpectShares(SharesOf(Idle({300, 200, 100})), {0.5, 1.0 / 3, 1.0 / 6});
}

TEST(TwoChoicesTest, PicksTheOnlyServer) { ExpectShares(SharesOf(Idle({7})), {1}); }

TEST(TwoChoicesTest, SpreadsEvenlyWhenServersAreBusy) {
  ExpectShares(SharesInUse(Idle({100, 100, 100}), {100, 100, 100}, 24),
               {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(TwoChoicesTest, FollowsWeightsWhenServersAreBusy) {
  ExpectShares(SharesInUse(Idle({200, 100, 100}), {100, 100, 100}, 32), {0.5, 0.25, 0.25});
}

TEST(TwoChoicesTest, GivesASlowServerLess) {
  const auto shares = SharesInUse(Idle({100, 100, 100}), {100, 100, 1000}, 24);
  EXPECT_LT(shares[2], 0.12);
  EXPECT_GT(shares[0], 0.38);
}

TEST(TwoChoicesTest, PicksServersOfUnknownLatencyLikeTheOthers) {
  std::vector<Load> loads = Idle({100, 100});
  loads[1].latency_us = 0;
  ExpectShares(SharesOf(loads), {0.5, 0.5});
}

// --- servers that may not be picked -------------------------------------------------------------

TEST(TwoChoicesTest, IgnoresServersThatMayNotBePicked) {
  std::vector<Load> loads = Idle({100, 100, 200, 400, 400, 400, 400, 400});
  for (size_t i = 3; i < loads.size(); ++i) loads[i].offered = false;
  const auto shares = SharesOf(loads);
  for (size_t i = 3; i < loads.size(); ++i) EXPECT_EQ(shares[i], 0) << i;
  ExpectShares({shares[0], shares[1], shares[2]}, {0.25, 0.25, 0.5});
}

TEST(TwoChoicesTest, PicksNoneWhenNoneMayBePicked) {
  std::vector<Load> loads = Idle({100, 100});
  for (Load& load : loads) load.offered = false;
  EXPECT_EQ(Picks(loads).Pick(), TwoChoices::kNone);
  EXPECT_EQ(Picks({}).Pick(), TwoChoices::kNone);
}

// Counts how many servers a pick examines, which must not grow with the number of servers.
class Counted {
 public:
  bool MayPick(size_t) const { return ++reads > 0; }
  double LatencyUs(size_t) const { return ++reads; }
  int InFlight(size_t) const { return ++reads; }
  mutable int reads = 0;
};

TEST(TwoChoicesTest, ExaminesFewServersHoweverManyThereAre) {
  const TwoChoices choices(std::vector<double>(1000, 100));
  SeededEntropy entropy(kSeed);
  for (int i = 0; i < 1000; ++i) {
    Counted servers;
    choices.Pick(servers, entropy);
    EXPECT_LE(servers.reads, 8);
  }
}

TEST(LotsTest, DrawEachInProportionToItsWeight) {
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
