#pragma once

#include <utility>

#include "common/base/status.h"
#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {

// Limits a store's attempts to reconnect. While the server is unreachable, all tags of the store
// request ranges, but only some requests try to connect. Thread-compatible.
class StoreLink {
 public:
  // `clock` and `entropy` must outlive the object.
  StoreLink(Backoff::Options backoff, const Clock& clock, Entropy& entropy)
      : clock_(clock), backoff_(backoff, entropy) {}

  // Returns ok if an attempt may be made now; otherwise the failure of the last one.
  Status MayConnect() const { return clock_.Boot() >= not_before_ ? Status() : last_failure_; }

  // Records that the connection failed or was closed. If the connection had worked, a new one may
  // be made at once. A server that accepts a connection and then refuses the work counts as
  // unreachable.
  Status Lost(Status why) {
    last_failure_ = std::move(why);
    if (!std::exchange(of_use_, false)) not_before_ = clock_.Boot() + backoff_.Next();
    return last_failure_;
  }

  // Records that the connection has worked.
  void Worked() {
    of_use_ = true;
    backoff_.Reset();
  }

 private:
  const Clock& clock_;
  Backoff backoff_;
  BootMs not_before_{};
  Status last_failure_;
  bool of_use_ = false;  // whether the last connection has worked
};

}  // namespace firn
