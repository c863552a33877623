#include "server/lease/lease_turns.h"

#include <algorithm>
#include <utility>

namespace firn {

LeaseTurns::Kind LeaseTurns::Judge(const std::string& turn, const std::string& acknowledged) const {
  if (any() && turn == last_) return Kind::kRepeated;
  if (std::find(earlier_.begin(), earlier_.end(), turn) != earlier_.end()) return Kind::kOutdated;
  return acknowledged == last_ ? Kind::kNext : Kind::kCopied;
}

void LeaseTurns::Accept(std::string turn) {
  if (any()) earlier_.push_back(std::move(last_));
  if (earlier_.size() > kRemembered) earlier_.pop_front();
  last_ = std::move(turn);
}

}  // namespace firn
