#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/time/entropy.h"

namespace firn::client {

// Draws one of several, each as often as its weight says, in constant time (Vose's alias method): n
// columns of equal height hold what is one's own share and the rest of somebody else's. Never
// changes once it is made, so thread-safe.
class Lots {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Weights are above 0; there may be none.
  explicit Lots(std::span<const double> weights);

  size_t size() const { return columns_.size(); }

  // One of those that `may` be drawn, as if there were no others; kNone when there is none. Takes
  // longer, as many steps as there are servers, only where most of them may not.
  template <typename May>
  size_t Draw(May may, Entropy& entropy) const {
    for (int i = 0; i < kQuickDraws && !columns_.empty(); ++i) {
      const size_t drawn = DrawAny(entropy);
      if (may(drawn)) return drawn;
    }
    return DrawSlowly(may, entropy);
  }

 private:
  static constexpr int kQuickDraws = 4;

  struct Column {
    double weight;
    double own;    // what part of the column is its own share
    size_t other;  // whose the rest is
  };

  // A number in [0, 1).
  static double Fraction(Entropy& entropy) {
    return static_cast<double>(entropy.Next() >> 11) * 0x1p-53;
  }
  size_t DrawAny(Entropy& entropy) const {
    const double at = Fraction(entropy) * static_cast<double>(columns_.size());
    const auto column = static_cast<size_t>(at);
    return at - static_cast<double>(column) < columns_[column].own ? column
                                                                   : columns_[column].other;
  }
  template <typename May>
  size_t DrawSlowly(May may, Entropy& entropy) const {
    double total = 0;
    for (size_t i = 0; i < columns_.size(); ++i) total += may(i) ? columns_[i].weight : 0;
    double at = Fraction(entropy) * total;
    size_t drawn = kNone;
    for (size_t i = 0; i < columns_.size() && at >= 0; ++i) {
      if (!may(i)) continue;
      drawn = i;
      at -= columns_[i].weight;
    }
    return drawn;
  }

  std::vector<Column> columns_;
};

}  // namespace firn::client
