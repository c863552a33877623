#include "client/fleet/balancer.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace firn::client {
namespace {

std::vector<double> Shares(std::span<const int64_t> weights) {
  return {weights.begin(), weights.end()};
}

class P2c final : public Balancer {
 public:
  explicit P2c(std::span<const int64_t> weights) : lots_(Shares(weights)) {}

  size_t Pick(const Servers& servers, Entropy& entropy) const override {
    const auto may = [&](size_t at) { return servers.MayPick(at); };
    const size_t first = lots_.Draw(may, entropy);
    if (first == kNone || lots_.size() == 1) return first;
    const size_t second =
        lots_.Draw([&](size_t at) { return at != first && servers.MayPick(at); }, entropy);
    if (second == kNone) return first;
    return ClearlyLess(servers, second, first) ? second : first;
  }

 private:
  bool ClearlyLess(const Servers& servers, size_t a, size_t b) const {
    constexpr double kClearly = 1.5;
    const double latency_a = servers.LatencyUs(a), latency_b = servers.LatencyUs(b);
    const bool comparable = latency_a > 0 && latency_b > 0;
    const double mean_weight = (lots_.weight(a) + lots_.weight(b)) / 2;
    const auto cost = [&](size_t at, double latency) {
      return (comparable ? latency : 1.0) *
             (1 + servers.InFlight(at) * mean_weight / lots_.weight(at));
    };
    return cost(a, latency_a) * kClearly <= cost(b, latency_b);
  }

  const Lots lots_;
};

// The turns of one whole round, smooth: with every turn, each server's credit grows by its weight.
// The server with the most credit takes the turn and pays the sum of all weights.
std::vector<uint32_t> TurnsOf(std::vector<int64_t> weights) {
  const auto most = std::max<int64_t>(1024, 4 * static_cast<int64_t>(weights.size()));
  int64_t gcd = 0;
  for (const int64_t weight : weights) gcd = std::gcd(gcd, weight);
  const auto sum = [&] { return std::accumulate(weights.begin(), weights.end(), int64_t{0}); };
  for (int64_t& weight : weights) weight /= gcd;
  if (const int64_t all = sum(); all > most) {
    for (int64_t& weight : weights) weight = std::max<int64_t>(1, weight * most / all);
  }
  const int64_t all = sum();
  std::vector<uint32_t> turns(static_cast<size_t>(all));
  // Equal weights are common and need no computation.
  std::iota(turns.begin(), turns.end(), 0U);
  if (turns.size() == weights.size()) return turns;
  std::vector<int64_t> credit(weights.size());
  for (uint32_t& turn : turns) {
    turn = 0;
    for (uint32_t i = 0; i < credit.size(); ++i) {
      credit[i] += weights[i];
      if (credit[i] > credit[turn]) turn = i;
    }
    credit[turn] -= all;
  }
  return turns;
}

class RoundRobin final : public Balancer {
 public:
  RoundRobin(std::span<const int64_t> weights, std::atomic<uint64_t>& turn)
      : turns_(weights.empty() ? std::vector<uint32_t>()
                               : TurnsOf({weights.begin(), weights.end()})),
        others_(Shares(weights)),
        turn_(turn) {}

  size_t Pick(const Servers& servers, Entropy& entropy) const override {
    constexpr int kTurnsTried = 4;
    for (int i = 0; i < kTurnsTried && !turns_.empty(); ++i) {
      const size_t at = turns_[turn_.fetch_add(1, std::memory_order_relaxed) % turns_.size()];
      if (servers.MayPick(at)) return at;
    }
    return others_.Draw([&](size_t at) { return servers.MayPick(at); }, entropy);
  }

 private:
  const std::vector<uint32_t> turns_;
  const Lots others_;
  std::atomic<uint64_t>& turn_;
};

class Random final : public Balancer {
 public:
  explicit Random(std::span<const int64_t> weights) : lots_(Shares(weights)) {}

  size_t Pick(const Servers& servers, Entropy& entropy) const override {
    return lots_.Draw([&](size_t at) { return servers.MayPick(at); }, entropy);
  }

 private:
  const Lots lots_;
};

class Sticky final : public Balancer {
 public:
  explicit Sticky(size_t count) : count_(count) {}

  size_t Pick(const Servers& servers, Entropy&) const override {
    for (size_t at = 0; at < count_; ++at) {
      if (servers.MayPick(at)) return at;
    }
    return kNone;
  }

 private:
  const size_t count_;
};

}  // namespace

std::unique_ptr<const Balancer> MakeBalancer(Balancing kind, std::span<const int64_t> weights,
                                             std::atomic<uint64_t>& turn) {
  switch (kind) {
    case Balancing::kRoundRobin:
      return std::make_unique<RoundRobin>(weights, turn);
    case Balancing::kRandom:
      return std::make_unique<Random>(weights);
    case Balancing::kSticky:
      return std::make_unique<Sticky>(weights.size());
    case Balancing::kP2c:
      break;
  }
  return std::make_unique<P2c>(weights);
}

}  // namespace firn::client
