#include "server/lease/lease_turns.h"

#include <algorithm>
#include <utility>

namespace firn {

LeaseTurns::Kind LeaseTurns::Judge(const std::string& turn, const std::string& acknowledged) const {
  if (any() && turn == last_) return Kind::kRepeated;
  const bool is_earlier = std::any_of(earlier_.begin(), earlier_.end(),
                                      [&](const Earlier& one) { return one.turn == turn; });
  if (is_earlier) return Kind::kOutdated;
  return acknowledged == last_ ? Kind::kNext : Kind::kCopied;
}

void LeaseTurns::Accept(std::string turn, WallMs clock) {
  if (any()) earlier_.push_back({std::move(last_), std::max(clock, last_clock_)});
  last_ = std::move(turn);
  last_clock_ = clock;
}

void LeaseTurns::Forget(WallMs oldest) {
  while (!earlier_.empty() && earlier_.front().clock < oldest) earlier_.pop_front();
}

}  // namespace firn
