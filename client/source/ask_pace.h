#pragma once

#include "client/server_source.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// When a client asks for the list of servers again.
//
//  1. After an answer when it says so, but neither in a blink nor after hours.
//  2. While nobody answers after ever longer pauses, give or take a half: a second at first, a
//     minute at most.
//  3. Where a call met trouble within a second, and not at once: many clients meet one trouble.
//
// A value, thread-compatible.
class AskPace {
 public:
  Micros AfterAnswer(Milliseconds ask_again);
  Micros AfterSilence(Entropy& entropy);
  static Micros AfterTrouble(Entropy& entropy);

 private:
  static constexpr Micros kSilenceMin{1'000'000};

  Micros silence_ = kSilenceMin;
};

}  // namespace firn::client
