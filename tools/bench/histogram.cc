#include "tools/bench/histogram.h"

#include <algorithm>
#include <bit>

namespace firn {

uint32_t Histogram::IndexOf(int64_t ns) {
  const auto value = static_cast<uint64_t>(std::clamp<int64_t>(ns, 0, kNsMax));
  const int width = static_cast<int>(std::bit_width(value));
  if (width <= kPartBits) return static_cast<uint32_t>(value);
  // The step is the position of the highest bit; the next bits are the part.
  const int shift = width - kPartBits - 1;
  const auto part = static_cast<uint32_t>(value >> shift) & ((1U << kPartBits) - 1);
  return (static_cast<uint32_t>(shift + 1) << kPartBits) + part;
}

int64_t Histogram::UpperOf(uint32_t index) {
  const uint32_t step = index >> kPartBits;
  const uint32_t part = index & ((1U << kPartBits) - 1);
  if (step == 0) return part;
  return ((int64_t{(1U << kPartBits) + part} + 1) << (step - 1)) - 1;
}

void Histogram::Add(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  total_ += other.total_;
}

int64_t Histogram::Quantile(double quantile) const {
  const auto wanted = static_cast<uint64_t>(quantile * static_cast<double>(total_));
  uint64_t seen = 0;
  for (uint32_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] != 0 && seen >= wanted) return UpperOf(i);
  }
  return 0;
}

}  // namespace firn
