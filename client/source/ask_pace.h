#pragma once

#include "client/server_source.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Determines when a client asks for the list of servers again.
//
//  1. After an answer: at the time that it names, within a minimum and a maximum.
//  2. While no server answers: with backoff and jitter of a half, from 1 s to
//     1 min.
//  3. After a failed call: within 1 s but not at once, because many clients see the same failure.
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
