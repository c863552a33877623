#pragma once

#include <cstdint>
#include <variant>

#include "client/fleet/spell.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server deserves to be asked.
//
//  1. It is ill after 3 failures in a row, or when half of its last 20 calls failed; a new one
//     begins as if all of them had been answered.
//  2. An ill server is out: for 1 s at first, twice as long each time up to 30 s. It rests, if its
//     owner lets it; otherwise it is failing.
//  3. After that one probe is due. Its failure begins the next, longer time out.
//  4. Any success ends illness and forgets all failures. That of a call also makes the next time
//     out a first one; that of a probe does not, for a status is not what calls ask for.
//
// A value, thread-compatible. The owner sees to it that never more than half of all servers rest.
class Health {
 public:
  static constexpr int kInARow = 3;
  static constexpr int kWindow = 20;
  static constexpr Micros kFirstRest{1'000'000};
  static constexpr Micros kLongestRest{30'000'000};

  // A call was answered.
  void Succeeded();
  // A probe was.
  void Seen();
  // `times` failures at once: some are worth two.
  void Failed(int times);

  bool ill() const;
  // Another success would change nothing.
  bool spotless() const { return window_ == 0 && in_a_row_ == 0 && !out(); }
  bool out() const { return !std::holds_alternative<Awake>(state_); }
  bool resting() const { return out() && rests_; }
  bool failing() const { return out() && !rests_; }

  // An ill server is out from now on. Returns for how long.
  Micros TakeOut(bool rests, Micros now, Entropy& entropy);

  // True once for each time out that is over: whoever is told so sends the probe, and reports what
  // came of it by Seen, or by TakeOut.
  bool TakeProbe(Micros now);

 private:
  //   Awake  --TakeOut-->  Out  --TakeProbe-->  Probed  --TakeOut-->  Out
  //     ^--------------Succeeded, Seen--------------'
  struct Awake {};
  struct Out {
    Micros until;
  };
  struct Probed {};

  int in_a_row_ = 0;
  uint32_t window_ = 0;  // the last calls, newest in bit 0; 1: failed
  Spell spell_{kFirstRest, kLongestRest};
  bool rests_ = false;
  std::variant<Awake, Out, Probed> state_{};
};

}  // namespace firn::client
