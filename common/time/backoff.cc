#include "common/time/backoff.h"

#include <algorithm>

#include "common/base/status.h"

namespace firn {

Backoff::Backoff(Options options, Entropy& entropy)
    : options_(options), entropy_(entropy), delay_(options.first) {
  if (options_.first < Milliseconds(1) || options_.cap < options_.first ||
      options_.cap > std::chrono::hours(24)) {
    Die("a backoff needs 1 ms <= first <= cap <= 1 day");
  }
}

Milliseconds Backoff::Next(Milliseconds cap) {
  delay_ = std::min(delay_, cap);
  const int64_t longest = delay_.count();
  const int64_t shortest = (longest + 1) / 2;
  delay_ = std::min(delay_ * 2, options_.cap);
  const auto spread = entropy_.Below(static_cast<uint64_t>(longest - shortest) + 1);
  return Milliseconds(shortest + static_cast<int64_t>(spread));
}

}  // namespace firn
