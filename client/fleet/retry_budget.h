#pragma once

#include <cstdint>

#include "common/time/micros.h"

namespace firn::client {

// How many requests all calls together may add to those that their first attempts are: so that a
// cluster in trouble is not asked three times as much as a healthy one.
//
// Earns a fifth of a retry for each call and 10 a second; holds kMost at most and is full at first.
// A value, thread-compatible.
class RetryBudget {
 public:
  static constexpr double kPerCall = 0.2;
  static constexpr double kPerSecond = 10;
  static constexpr double kMost = 200;

  // So many calls have begun since this was last said.
  void Calls(uint64_t n) { Earn(kPerCall * static_cast<double>(n)); }

  // True when a retry may be sent; it is then paid for.
  bool Take(Micros now) {
    if (now > last_) {
      Earn(kPerSecond * static_cast<double>((now - last_).count()) / 1e6);
      last_ = now;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  void Earn(double tokens) { tokens_ = tokens_ + tokens < kMost ? tokens_ + tokens : kMost; }

  double tokens_ = kMost;
  Micros last_{0};
};

}  // namespace firn::client
