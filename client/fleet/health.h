#pragma once

#include <cstdint>
#include <optional>

#include "client/fleet/probe.h"
#include "client/fleet/spell.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server responds well enough for calls.
//
//  1. A server is ill after 3 consecutive failures, or if half of its last 20 calls failed. A new
//     server starts as if all of them had succeeded.
//  2. An ill server is out for 1 s, doubling to 30 s. If its owner permits, it is ejected (rests);
//     otherwise it is failing.
//  3. After that time, one probe is due. If it fails, the next, longer time begins.
//  4. Any success of an ill server ends that and discards all failures. A successful call also
//     resets the backoff; a successful probe does not, because calls do not request a status.
//
// A value, thread-compatible. The owner ensures that at most half of all servers rest.
class Health {
 public:
  static constexpr int kInARow = 3;
  static constexpr int kWindow = 20;
  static constexpr Micros kFirstRest{1'000'000};
  static constexpr Micros kLongestRest{30'000'000};

  // Records a successful call.
  void Succeeded();
  // Records a successful probe.
  void Seen();
  // Records `times` failures: some outcomes count twice.
  void Failed(int times);

  bool ill() const;
  // Returns true if another success would change nothing.
  bool spotless() const { return window_ == 0 && in_a_row_ == 0 && !out(); }
  bool out() const { return probe_.has_value(); }
  bool resting() const { return out() && rests_; }
  bool failing() const { return out() && !rests_; }

  // Takes an ill server out. Returns for how long.
  Micros TakeOut(bool rests, Micros now, Entropy& entropy);

  // Returns true once when the time of TakeOut has passed. The caller must then send a probe and
  // report its result with Seen or TakeOut.
  bool TakeProbe(Micros now) { return out() && probe_->Take(now); }

 private:
  int in_a_row_ = 0;
  uint32_t window_ = 0;  // the last calls, newest in bit 0; 1: failed
  Spell spell_{kFirstRest, kLongestRest};
  bool rests_ = false;
  std::optional<Probe> probe_{};  // set while out
};

}  // namespace firn::client
