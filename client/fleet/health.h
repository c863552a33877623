#pragma once

#include <cstdint>
#include <optional>

#include "client/fleet/probe.h"
#include "client/fleet/server_backoff.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server responds well enough for calls.
//
//  1. A server has too many failures after 3 in a row, or if half of its last 20 calls failed. A
//     new server starts as if these calls had succeeded.
//  2. It is then out for 1 s, doubling to 30 s. If its owner permits, it is ejected. Otherwise it
//     is failing.
//  3. After that time, one probe is due. If it fails, the next, longer time begins.
//  4. Any success of such a server ends this state and discards all failures. A successful call
//     also resets the backoff; a successful probe does not, because calls do not request a status.
//
// A value, thread-compatible. The owner ensures that at most half of all servers are ejected.
class Health {
 public:
  static constexpr int kInARow = 3;
  static constexpr int kWindow = 20;
  static constexpr Micros kFirstEjection{1'000'000};
  static constexpr Micros kLongestEjection{30'000'000};

  // Records a successful call.
  void Succeeded();
  // Records a successful probe.
  void Seen();
  // Records `times` failures: some outcomes count twice.
  void Failed(int times);

  bool TooManyFailures() const;
  // Returns true if another success would change nothing.
  bool spotless() const { return window_ == 0 && in_a_row_ == 0 && !out(); }
  bool out() const { return probe_.has_value(); }
  bool ejected() const { return ejected_; }
  bool failing() const { return out() && !ejected_; }

  // Takes the server out, as ejected or as failing. Returns for how long.
  Micros TakeOut(bool eject, Micros now, Entropy& entropy);

  // Returns true once when the time of TakeOut has passed. The caller must then send a probe and
  // report its result with Seen or TakeOut.
  bool TakeProbe(Micros now) { return out() && probe_->Take(now); }

 private:
  int in_a_row_ = 0;
  uint32_t window_ = 0;  // the last calls, newest in bit 0; 1: failed
  ServerBackoff backoff_{kFirstEjection, kLongestEjection};
  bool ejected_ = false;
  std::optional<Probe> probe_{};  // set while out
};

}  // namespace firn::client
