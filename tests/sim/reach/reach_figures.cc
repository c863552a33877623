#include "tests/sim/reach/reach_figures.h"

#include <algorithm>

namespace firn {

void Times::Add(Micros time, uint64_t times) {
  const auto step = static_cast<size_t>(time.count() / kStepUs);
  if (steps_.size() <= step) steps_.resize(step + 1);
  steps_[step] += times;
  count_ += times;
  max_s_ = std::max(max_s_, static_cast<double>(time.count()) / 1e6);
}

double Times::Quantile(double part) const {
  const double wanted = part * static_cast<double>(count_);
  double sum = 0;
  for (size_t step = 0; step < steps_.size(); ++step) {
    sum += static_cast<double>(steps_[step]);
    if (sum >= wanted) return static_cast<double>(step + 1) * static_cast<double>(kStepUs) / 1e6;
  }
  return 0;
}

}  // namespace firn
