#pragma once

#include <cstddef>
#include <span>

#include "client/fleet/lots.h"
#include "common/time/entropy.h"

namespace firn::client {

// Picks one of several servers by its index. Two are drawn by weight. The second is picked if it is
// clearly less loaded: its latency x (1 + calls in flight, divided by its relative weight) is at
// most two thirds of the first one's. A smaller difference is noise, so the first is picked. Idle
// servers thus get calls by weight, and busy ones get fewer.
//
// Immutable, so thread-safe without a lock. A pick takes constant time, unless most of the servers
// must not be picked.
class TwoChoices final {
 public:
  static constexpr size_t kNone = Lots::kNone;

  // The weights are above 0.
  explicit TwoChoices(std::span<const double> weights) : lots_(weights) {}

  // Returns the index of a server that may be picked, or kNone. `servers` has MayPick(at),
  // LatencyUs(at), which is 0 if unknown, and InFlight(at).
  template <typename Servers>
  size_t Pick(const Servers& servers, Entropy& entropy) const {
    const size_t first = lots_.Draw([&](size_t at) { return servers.MayPick(at); }, entropy);
    if (first == kNone || lots_.size() == 1) return first;
    const size_t second =
        lots_.Draw([&](size_t at) { return at != first && servers.MayPick(at); }, entropy);
    if (second == kNone) return first;
    return ClearlyLess(servers, second, first) ? second : first;
  }

 private:
  template <typename Servers>
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

}  // namespace firn::client
