#pragma once

#include <utility>

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

  // There is no connection, or none any more. One that was of use may be made again at once; a
  // server that lets us in and then refuses what it is for is as good as away.
  Status Lost(Status why) {
    last_failure_ = std::move(why);
    if (!std::exchange(of_use_, false)) not_before_ = clock_.Boot() + backoff_.Next();
    return last_failure_;
  }

  // What the connection is for was done.
  void Worked() {
    of_use_ = true;
    backoff_.Reset();
  }

 private:
  const Clock& clock_;
  Backoff backoff_;
  BootMs not_before_{};
  Status last_failure_;
  bool of_use_ = false;  // the last connection
};

}  // namespace firn
