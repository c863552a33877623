#include "client/fleet/health.h"

#include <algorithm>
#include <bit>

namespace firn::client {

void Health::Succeeded() {
  if (out()) *this = Health();
  in_a_row_ = 0;
  window_ = window_ << 1 & ((1U << kWindow) - 1);
}

void Health::Seen() {
  const Spell spell = spell_;
  *this = Health();
  spell_ = spell;
}

void Health::Failed(int times) {
  for (int i = 0; i < times; ++i) {
    in_a_row_ = std::min(in_a_row_ + 1, kWindow);
    window_ = (window_ << 1 | 1U) & ((1U << kWindow) - 1);
  }
}

bool Health::ill() const { return in_a_row_ >= kInARow || std::popcount(window_) * 2 >= kWindow; }

Micros Health::TakeOut(bool rests, Micros now, Entropy& entropy) {
  rests_ = rests;
  const Micros length = spell_.Next(now, entropy);
  probe_ = Probe{.at = now + length};
  return length;
}

}  // namespace firn::client
