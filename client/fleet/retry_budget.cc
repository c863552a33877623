#include "client/fleet/retry_budget.h"

namespace firn::client {

bool RetryBudget::Take(Micros now) {
  if (now > last_) {
    Earn(kPerSecond * static_cast<double>((now - last_).count()) / 1e6);
    last_ = now;
  }
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

}  // namespace firn::client
