#pragma once

#include <cstdint>

#include "common/time/micros.h"

namespace firn::client {

// Limits the retries of all calls together, so that a cluster in trouble does not receive three
// times as many requests as a healthy one.
//
// Earns a fifth of a retry per call and 10 per second; holds at most kMost and starts full. A
// value, thread-compatible.
class RetryBudget {
 public:
  static constexpr double kPerCall = 0.2;
  static constexpr double kPerSecond = 10;
  static constexpr double kMost = 200;

  // Adds `n` calls that have begun.
  void Calls(uint64_t n) { Earn(kPerCall * static_cast<double>(n)); }

  // Takes one retry. Returns false if the budget is used up.
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
