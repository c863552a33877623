#include "server/lease/lease_turns.h"

#include <algorithm>
#include <utility>

namespace firn {

LeaseTurns LeaseTurns::Resumed(std::string last, WallMs clock) {
  LeaseTurns turns;
  turns.unknown_ = last.empty();
  turns.resumed_at_ = clock;
  if (!last.empty()) turns.last_clock_ = clock;
  turns.last_ = std::move(last);
  return turns;
}

LeaseTurns::Kind LeaseTurns::Judge(const std::string& turn, const std::string& acknowledged,
                                   WallMs clock) const {
  if (unknown_) return clock < resumed_at_ ? Kind::kEarly : Kind::kNext;
  if (any() && turn == last_) return Kind::kRepeated;
  const bool is_earlier = std::any_of(earlier_.begin(), earlier_.end(),
                                      [&](const Earlier& one) { return one.turn == turn; });
  if (is_earlier) return Kind::kOutdated;
  if (acknowledged == last_) return Kind::kNext;
  return clock < resumed_at_ ? Kind::kOutdated : Kind::kCopied;
}

void LeaseTurns::Accept(std::string turn, WallMs clock) {
  if (std::exchange(unknown_, false)) resumed_at_ = clock;
  if (any()) earlier_.push_back({std::move(last_), std::max(clock, last_clock_)});
  last_ = std::move(turn);
  last_clock_ = clock;
}

void LeaseTurns::Forget(WallMs oldest) {
  while (!earlier_.empty() && earlier_.front().clock < oldest) earlier_.pop_front();
}

}  // namespace firn
