#pragma once

#include "common/base/status.h"
#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {

// When a store may try again to connect to its server. A store that is away is asked for a range by
// every tag that uses it; only now and then does one of them find out whether it is back.
// Thread-compatible.
class StoreLink {
 public:
  // `clock` and `entropy` must outlive it.
  StoreLink(Backoff::Options backoff, const Clock& clock, Entropy& entropy)
      : clock_(clock), backoff_(backoff, entropy) {}

  // Ok when an attempt may be made now; otherwise the failure of the last one.
  Status MayConnect() const { return clock_.Boot() >= not_before_ ? Status() : last_failure_; }

  // How the attempt ended.
  Status Connected(Status status) {
    if (status.ok()) {
      backoff_.Reset();
    } else {
      not_before_ = clock_.Boot() + backoff_.Next();
      last_failure_ = status;
    }
    return status;
  }

 private:
  const Clock& clock_;
  Backoff backoff_;
  BootMs not_before_{};
  Status last_failure_;
};

}  // namespace firn
