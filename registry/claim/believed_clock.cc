#include "registry/claim/believed_clock.h"

#include <algorithm>
#include <cstdlib>

namespace firn {
namespace {

// How far `value` lies from the nearest point of [low, high]; negative: below it.
int64_t DistanceFrom(int64_t low, int64_t high, int64_t value) {
  return value - std::clamp(value, low, high);
}

}  // namespace

void BelievedClock::Confirm(WallMs shown, BootMs now) {
  ahead_ = shown_ = shown.ms() - now.ms();
  off_ = {};
}

bool BelievedClock::Hear(WallMs shown, Now asked, Now now) {
  if (shown == WallMs()) return !disagrees();
  // The registry read its clock at some moment between the two.
  const int64_t low = shown.ms() - now.boot.ms();
  const int64_t high = shown.ms() - asked.boot.ms();
  shown_ = low;
  const auto agrees = [&](int64_t ahead) {
    return std::abs(DistanceFrom(low, high, ahead)) <= skew_max_.count();
  };
  const bool stays = ahead_.has_value() && agrees(*ahead_);
  const bool confirmed = !shares_wall_ && agrees(now.wall.ms() - now.boot.ms());
  // The first reading of a registry that shares this host's clock: nothing contradicts it.
  const bool first = !ahead_.has_value() && shares_wall_;
  if (stays || confirmed || first) {
    ahead_ = std::clamp(ahead_.value_or(low), low, high);
    off_ = {};
    return true;
  }
  const int64_t believed = ahead_.value_or(now.wall.ms() - now.boot.ms());
  off_ = Milliseconds(-DistanceFrom(low, high, believed));
  return false;
}

std::optional<WallMs> BelievedClock::At(BootMs now) const {
  return ahead_.has_value() ? std::optional(WallMs(now.ms() + *ahead_)) : std::nullopt;
}

WallMs BelievedClock::ShownAt(BootMs now) const {
  return shown_.has_value() ? WallMs(now.ms() + *shown_) : WallMs();
}

}  // namespace firn
