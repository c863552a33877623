#pragma once

#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/backoff.h"
#include "common/time/entropy.h"
#include "server/issue/strategy.h"

namespace firn {

// When a strategy may ask its source for more numbers (one question at a time, and after a failure
// with growing pauses), and what to tell a caller whom it has nothing to give meanwhile.
// Thread-compatible: under its owner's mutex.
class FetchGate {
 public:
  // A caller waits for a next attempt that is as near as this; otherwise it is refused at once.
  static constexpr Milliseconds kNear{100};
  // A question that is unanswered for longer counts as a store that is away.
  static constexpr Milliseconds kSlow{2'000};

  explicit FetchGate(Entropy& entropy)
      : backoff_({Milliseconds(20), Milliseconds(2'000)}, entropy) {}

  bool open(BootMs now) const { return !in_flight_ && now >= retry_at_; }
  bool in_flight() const { return in_flight_; }

  void Began(BootMs now);
  void Succeeded();
  void Failed(Status why, BootMs now);

  // How the last question was answered; ok before the first.
  const Status& trouble() const { return trouble_; }

  // For a call that finds no number: to wait, or why not. At the end of all numbers EXHAUSTED;
  // STORE_DOWN while the source is away; a call whose patience ends though it answers: OVERLOADED.
  Verdict Answer(IssueCall& call, BootMs now) const;

  // The refusal of a call that finds no number and goes on finding none; empty while they come.
  std::optional<Refusal> WhyNot(BootMs now) const;

 private:
  Refusal WhyNone(BootMs now) const;

  Backoff backoff_;
  bool in_flight_ = false;
  BootMs began_;
  BootMs retry_at_;
  Status trouble_;
};

}  // namespace firn
