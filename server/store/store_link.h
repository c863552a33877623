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

  // Opens `connection` if it is closed and an attempt may be made now.
  template <typename Connection>
  Status Connect(Connection& connection) {
    if (connection.is_open()) return {};
    FIRN_TRY(MayConnect());
    Status opened = connection.Open();
    return opened.ok() ? opened : Lost(std::move(opened));
  }

  // Records the result of a command over `connection`, which closes if its state is uncertain.
  template <typename Connection, typename T>
  Result<T> Ended(const Connection& connection, Result<T> result) {
    if (result.ok()) {
      Worked();
    } else if (!connection.is_open()) {
      return Lost(result.status());
    }
    return result;
  }

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
