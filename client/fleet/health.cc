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
  const ServerBackoff backoff = backoff_;
  *this = Health();
  backoff_ = backoff;
}

void Health::Failed(int times) {
  for (int i = 0; i < times; ++i) {
    in_a_row_ = std::min(in_a_row_ + 1, kWindow);
    window_ = (window_ << 1 | 1U) & ((1U << kWindow) - 1);
  }
}

bool Health::TooManyFailures() const {
  return in_a_row_ >= kInARow || std::popcount(window_) * 2 >= kWindow;
}

Micros Health::TakeOut(bool eject, Micros now, Entropy& entropy) {
  ejected_ = eject;
  const Micros length = backoff_.Next(now, entropy);
  probe_ = Probe{.at = now + length};
  return length;
}

}  // namespace firn::client
