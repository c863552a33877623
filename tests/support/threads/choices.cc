#include "tests/support/threads/choices.h"

#include <algorithm>

#include "common/base/status.h"

namespace firn {

bool Choices::Begin() {
  std::copy(std::begin(budget_), std::end(budget_), std::begin(left_));
  depth_ = 0;
  settled_ = false;
  if (drawn_ || !begun_) return begun_ = true;
  while (!path_.empty() && path_.back().taken + 1 == path_.back().ways) path_.pop_back();
  if (path_.empty()) return false;
  ++path_.back().taken;
  return true;
}

size_t Choices::Among(size_t ways, Kind kind) {
  if (ways == 1 || settled_) return 0;
  if (drawn_) return Draw(ways, kind);
  int& left = left_[static_cast<size_t>(kind)];
  if (kind != Kind::kFree && left == 0) return 0;
  if (depth_ == path_.size()) path_.push_back({0, ways});
  if (path_[depth_].ways != ways) Die("a scenario does not do the same again");
  const size_t taken = path_[depth_++].taken;
  if (kind != Kind::kFree && taken != 0) --left;
  return taken;
}

// Interruptions and stale values are rarer than steps, so that all kinds of runs occur.
size_t Choices::Draw(size_t ways, Kind kind) {
  if (kind != Kind::kFree && entropy_.Below(4) != 0) return 0;
  return entropy_.Below(ways);
}

}  // namespace firn
