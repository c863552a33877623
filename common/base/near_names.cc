#include "common/base/near_names.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "common/base/quote.h"

namespace firn {
namespace {

// The number of letters to insert, omit or change (Levenshtein) between one name and others. A
// column of the table of distances is one word: each bit says whether a cell differs by one from
// the cell above it (Myers' algorithm, in Hyyro's form). So a name costs one step per letter, not
// one per pair of letters.
class Distances {
 public:
  explicit Distances(std::string_view name) : name_(name) {
    static_assert(kLettersMax < 64);
    if (name.empty() || name.size() > kLettersMax) return;
    for (size_t i = 0; i < name.size(); ++i) places_[ByteOf(name[i])] |= uint64_t{1} << i;
  }

  // Returns the larger length if a name is too long to compare.
  size_t To(std::string_view other) const {
    if (std::max(name_.size(), other.size()) > kLettersMax) {
      return std::max(name_.size(), other.size());
    }
    const uint64_t last = uint64_t{1} << (name_.size() - 1);
    uint64_t up = ~uint64_t{0}, down = 0;
    size_t distance = name_.size();
    for (const char letter : other) {
      const uint64_t equal = places_[ByteOf(letter)] | down;
      const uint64_t diagonal = (((equal & up) + up) ^ up) | equal;
      uint64_t more = down | ~(up | diagonal);
      uint64_t fewer = up & diagonal;
      if ((more & last) != 0) ++distance;
      if ((fewer & last) != 0) --distance;
      more = more << 1 | 1;
      fewer <<= 1;
      up = fewer | ~(more | diagonal);
      down = more & diagonal;
    }
    return distance;
  }

 private:
  static size_t ByteOf(char letter) { return static_cast<unsigned char>(letter); }

  const std::string_view name_;
  std::array<uint64_t, 256> places_{};  // of each letter in the name
};

}  // namespace

std::vector<std::string> NearNames(std::string_view name, std::span<const std::string_view> known,
                                   size_t count_max) {
  std::vector<std::pair<size_t, std::string_view>> near;
  if (name.empty()) return {};
  const size_t distance_max = std::max<size_t>(2, name.size() / 3);
  const Distances distances(name);
  for (const std::string_view other : known.first(std::min(known.size(), kKnownMax))) {
    const bool begins = other.starts_with(name) || name.starts_with(other);
    const size_t distance = distances.To(other);
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
