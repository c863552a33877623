#include "client/fleet/lots.h"

#include <numeric>

namespace firn::client {

Lots::Lots(std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double scale = static_cast<double>(weights.size()) / total;
  std::vector<size_t> low, high;
  for (size_t i = 0; i < weights.size(); ++i) {
    columns_.push_back({.weight = weights[i], .own = weights[i] * scale, .other = i});
    (columns_[i].own < 1 ? low : high).push_back(i);
  }
  // Items with more than one column fill up the columns of items with less.
  while (!low.empty() && !high.empty()) {
    Column& filled = columns_[low.back()];
    const size_t giver = high.back();
    low.pop_back();
    filled.other = giver;
    columns_[giver].own -= 1 - filled.own;
    if (columns_[giver].own >= 1) continue;
    high.pop_back();
    low.push_back(giver);
  }
  // The remaining shares differ from a whole column only by rounding.
}

}  // namespace firn::client
