#pragma once

#include <cstdint>
#include <variant>

#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server deserves to be asked.
//
//  1. It is ill after 3 failures in a row, or when half of its last 20 calls failed.
//  2. An ill server rests if its owner lets it: for 1 s at first, twice as long each time up to
//     30 s, spread over the upper half so that clients do not come back together.
//  3. After its rest one probe is due. Its failure begins the next, longer rest.
//  4. Any success, of a probe or of a call, ends rest and illness and forgets all failures.
//
// A value, thread-compatible. The owner sees to it that never more than half of all servers rest.
class Health {
 public:
  static constexpr int kInARow = 3;
  static constexpr int kWindow = 20;
  static constexpr Micros kFirstRest{1'000'000};
  static constexpr Micros kLongestRest{30'000'000};

  void Succeeded();
  // `times` failures at once: some are worth two.
  void Failed(int times);

  bool ill() const;
  // Another success would change nothing.
  bool spotless() const { return window_ == 0 && in_a_row_ == 0 && seen_ == kWindow && !resting(); }
  bool resting() const { return !std::holds_alternative<Awake>(state_); }

  // An ill server begins a rest. Returns its length.
  Micros Rest(Micros now, Entropy& entropy);

  // True once for each rest that is over: whoever is told so sends the probe, and reports what came
  // of it by Succeeded, or by Rest.
  bool TakeProbe(Micros now);

 private:
  //   Awake  --Rest-->  Resting  --TakeProbe-->  Probed  --Rest-->  Resting
  //     ^------------------Succeeded---------------'
  struct Awake {};
  struct Resting {
    Micros until;
  };
  struct Probed {};

  int in_a_row_ = 0;
  uint32_t window_ = 0;  // the last calls, newest in bit 0; 1: failed
  int seen_ = 0;         // how many of them there are
  Micros rest_{0};       // the last rest before it was spread; 0: none since the last success
  std::variant<Awake, Resting, Probed> state_{};
};

}  // namespace firn::client
