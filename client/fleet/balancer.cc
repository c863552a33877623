#include "client/fleet/balancer.h"

#include <map>
#include <optional>

namespace firn::client {
namespace {

constexpr size_t kNone = SIZE_MAX;

// A number in [0, 1).
double Fraction(Entropy& entropy) { return static_cast<double>(entropy.Next() >> 11) * 0x1p-53; }

// One by weight, `except` left out; there are others.
size_t Draw(std::span<const Load> from, Entropy& entropy, size_t except = kNone) {
  double total = 0;
  for (size_t i = 0; i < from.size(); ++i) total += i == except ? 0 : from[i].weight;
  double at = Fraction(entropy) * total;
  size_t last = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (i == except) continue;
    last = i;
    at -= from[i].weight;
    if (at < 0) break;
  }
  return last;
}

class P2c final : public Balancer {
 public:
  size_t Pick(std::span<const Load> from, Entropy& entropy) override {
    const size_t first = Draw(from, entropy);
    if (from.size() == 1) return first;
    const size_t second = Draw(from, entropy, first);
    return ClearlyLess(from[second], from[first]) ? second : first;
  }

 private:
  static bool ClearlyLess(const Load& a, const Load& b) {
    constexpr double kClearly = 1.5;
    const bool comparable = a.latency_us > 0 && b.latency_us > 0;
    const double mean_weight = (a.weight + b.weight) / 2;
    const auto cost = [&](const Load& load) {
      return (comparable ? load.latency_us : 1.0) *
             (1 + load.in_flight * mean_weight / load.weight);
    };
    return cost(a) * kClearly <= cost(b);
  }
};

class RoundRobin final : public Balancer {
 public:
  size_t Pick(std::span<const Load> from, Entropy&) override {
    if (credit_.size() > kRememberedMax) credit_.clear();
    double total = 0;
    size_t best = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      total += from[i].weight;
      credit_[from[i].server] += from[i].weight;
      if (credit_[from[i].server] > credit_[from[best].server]) best = i;
    }
    credit_[from[best].server] -= total;
    return best;
  }

 private:
  static constexpr size_t kRememberedMax = 4096;

  std::map<uint64_t, double> credit_;
};

class Random final : public Balancer {
 public:
  size_t Pick(std::span<const Load> from, Entropy& entropy) override { return Draw(from, entropy); }
};

class Sticky final : public Balancer {
 public:
  size_t Pick(std::span<const Load> from, Entropy& entropy) override {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i].server == kept_) return i;
    }
    const size_t drawn = Draw(from, entropy);
    kept_ = from[drawn].server;
    return drawn;
  }

 private:
  std::optional<uint64_t> kept_;
};

}  // namespace

std::unique_ptr<Balancer> MakeBalancer(Balancing kind) {
  switch (kind) {
    case Balancing::kRoundRobin:
      return std::make_unique<RoundRobin>();
    case Balancing::kRandom:
      return std::make_unique<Random>();
    case Balancing::kSticky:
      return std::make_unique<Sticky>();
    case Balancing::kP2c:
      break;
  }
  return std::make_unique<P2c>();
}

}  // namespace firn::client
