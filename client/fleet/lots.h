#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/time/entropy.h"

namespace firn::client {

// Draws items by weight in constant time (Vose's alias method): each of n columns of equal height
// consists of its own item's share and a share of another item. Immutable, so thread-safe.
class Lots {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Weights must be above 0; there may be none.
  explicit Lots(std::span<const double> weights);

  size_t size() const { return columns_.size(); }
  double weight(size_t at) const { return columns_[at].weight; }

  // Draws one of the items for which `may` is true, by their weights, or returns kNone. Takes
  // linear time only if `may` is false for most items.
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
    double own;    // fraction that belongs to its own item
    size_t other;  // item of the other fraction
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
