#include "tests/drill/callers/takings.h"

#include <algorithm>

namespace firn {

void Takings::Add(Numbers numbers, int64_t before) {
  const std::scoped_lock lock(mutex_);
  all_.push_back(numbers);
  fallen_ += numbers.first <= before ? 1 : 0;
  highest_ = std::max(highest_.load(), numbers.first + numbers.count - 1);
  ++answers_;
}

void Takings::AddLate(const std::vector<int64_t>& numbers) {
  const std::scoped_lock lock(mutex_);
  for (const int64_t number : numbers) {
    all_.push_back({number, 1});
    highest_ = std::max(highest_.load(), number);
  }
}

Takings::Findings Takings::Judge() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Numbers> sorted = all_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Numbers& a, const Numbers& b) { return a.first < b.first; });
  Findings found;
  found.fallen = fallen_;
  int64_t end = 0;
  for (const Numbers& numbers : sorted) {
    found.ids += numbers.count;
    found.duplicates += std::clamp(end - numbers.first, int64_t{0}, numbers.count);
    end = std::max(end, numbers.first + numbers.count);
  }
  return found;
}

}  // namespace firn
