#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "common/time/micros.h"

namespace firn::client {

// A server's recent latency as a peak-sensitive moving average: a slow answer counts at once and
// fully. Fast answers lower the value over kDecay, and so does idle time, so that a server that was
// slow once is tried again.
//
// Thread-safe without a lock: if two answers are observed at the same moment, one may be lost; the
// next one compensates.
class PeakEwma {
 public:
  static constexpr Micros kDecay{1'000'000};

  void Observe(Micros took, Micros now) {
    const double sample = std::max(static_cast<double>(took.count()), 1.0);
    const double value = value_us_.load(std::memory_order_relaxed);
    const Micros last = last_.load(std::memory_order_relaxed);
    const double kept = Kept(now - last);
    value_us_.store(sample > value ? sample : value * kept + sample * (1 - kept),
                    std::memory_order_relaxed);
    last_.store(std::max(last, now), std::memory_order_relaxed);
  }

  // In microseconds; 0 before the first observation.
  double At(Micros now) const {
    const double value = value_us_.load(std::memory_order_relaxed);
    if (value == 0) return 0;
    return std::max(value * Kept(now - last_.load(std::memory_order_relaxed)), 1.0);
  }

  void Forget() { value_us_.store(0, std::memory_order_relaxed); }

 private:
  static double Kept(Micros elapsed) {
    if (elapsed <= Micros(0)) return 1;
    return std::exp(-static_cast<double>(elapsed.count()) / static_cast<double>(kDecay.count()));
  }

  std::atomic<double> value_us_ = 0;
  std::atomic<Micros> last_{Micros(0)};
};

}  // namespace firn::client
