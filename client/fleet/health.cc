#include "client/fleet/health.h"

#include <algorithm>
#include <bit>

namespace firn::client {

void Health::Succeeded() {
  if (resting()) *this = Health();
  in_a_row_ = 0;
  rest_ = Micros(0);
  window_ = window_ << 1 & ((1U << kWindow) - 1);
  seen_ = std::min(seen_ + 1, kWindow);
}

void Health::Failed(int times) {
  for (int i = 0; i < times; ++i) {
    in_a_row_ = std::min(in_a_row_ + 1, kWindow);
    window_ = (window_ << 1 | 1U) & ((1U << kWindow) - 1);
    seen_ = std::min(seen_ + 1, kWindow);
  }
}

bool Health::ill() const {
  return in_a_row_ >= kInARow || (seen_ == kWindow && std::popcount(window_) * 2 >= kWindow);
}

Micros Health::Rest(Micros now, Entropy& entropy) {
  rest_ = rest_ == Micros(0) ? kFirstRest : std::min(rest_ * 2, kLongestRest);
  const auto half = static_cast<uint64_t>(rest_.count()) / 2;
  const Micros length(static_cast<int64_t>(half + entropy.Below(half + 1)));
  state_ = Resting{now + length};
  return length;
}

bool Health::TakeProbe(Micros now) {
  const auto* resting = std::get_if<Resting>(&state_);
  if (resting == nullptr || now < resting->until) return false;
  state_ = Probed{};
  return true;
}

}  // namespace firn::client
