#include "client/peak_ewma.h"

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
  const double kept = Kept(now - last_);
  value_us_ = sample > value_us_ ? sample : value_us_ * kept + sample * (1 - kept);
  last_ = std::max(last_, now);
}

double PeakEwma::At(Micros now) const {
  if (value_us_ == 0) return 0;
  return std::max(value_us_ * Kept(now - last_), 1.0);
}

}  // namespace firn::client
