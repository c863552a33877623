#include "common/base/near_names.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "common/base/quote.h"

namespace firn {
namespace {

// Returns the number of letters to insert, omit or change (Levenshtein). Returns the larger length
// if a name is too long to compare.
size_t Distance(std::string_view a, std::string_view b) {
  if (std::max(a.size(), b.size()) > kLettersMax) return std::max(a.size(), b.size());
  std::array<size_t, kLettersMax + 1> row;
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::vector<std::string> NearNames(std::string_view name, std::span<const std::string_view> known,
                                   size_t count_max) {
  std::vector<std::pair<size_t, std::string_view>> near;
  if (name.empty()) return {};
  const size_t distance_max = std::max<size_t>(2, name.size() / 3);
  for (const std::string_view other : known.first(std::min(known.size(), kKnownMax))) {
    const bool begins = other.starts_with(name) || name.starts_with(other);
    const size_t distance = Distance(name, other);
    if (begins || distance <= distance_max) near.emplace_back(distance, other);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(count_max, near.size()); ++i) names.emplace_back(near[i].second);
  return names;
}

std::string DidYouMean(std::string_view name, std::span<const std::string_view> known) {
  const std::vector<std::string> near = NearNames(name, known, 1);
  return near.empty() ? "" : "; did you mean " + Quoted(near.front()) + "?";
}

}  // namespace firn
