#include "client/fleet/peak_ewma.h"

#include <algorithm>
#include <cmath>

namespace firn::client {
namespace {

double Kept(Micros elapsed) {
  if (elapsed <= Micros(0)) return 1;
  return std::exp(-static_cast<double>(elapsed.count()) /
                  static_cast<double>(PeakEwma::kDecay.count()));
}

}  // namespace

void PeakEwma::Observe(Micros took, Micros now) {
  const double sample = std::max(static_cast<double>(took.count()), 1.0);
  const double value = value_us_.load(std::memory_order_relaxed);
  const Micros last = last_.load(std::memory_order_relaxed);
  const double kept = Kept(now - last);
  value_us_.store(sample > value ? sample : value * kept + sample * (1 - kept),
                  std::memory_order_relaxed);
  last_.store(std::max(last, now), std::memory_order_relaxed);
}

double PeakEwma::At(Micros now) const {
  const double value = value_us_.load(std::memory_order_relaxed);
  if (value == 0) return 0;
  return std::max(value * Kept(now - last_.load(std::memory_order_relaxed)), 1.0);
}

}  // namespace firn::client
