#pragma once

#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/backoff.h"
#include "common/time/entropy.h"
#include "server/issue/strategy.h"

namespace firn {

// Decides when a strategy may request numbers from its source: one request at a time, with backoff
// after a failure. Also decides whether a call that finds no numbers waits or is refused.
// Thread-compatible: guarded by its owner's mutex.
class FetchGate {
 public:
  // A call waits for the next attempt if that begins within this time; otherwise the call is
  // refused at once.
  static constexpr Milliseconds kNear{100};
  // A request unanswered for this long counts as an unreachable store.
  static constexpr Milliseconds kSlow{2'000};

  explicit FetchGate(Entropy& entropy)
      : backoff_({Milliseconds(20), Milliseconds(2'000)}, entropy) {}

  bool open(BootMs now) const { return !in_flight_ && now >= retry_at_; }
  bool in_flight() const { return in_flight_; }

  void Began(BootMs now);
  void Succeeded();
  void Failed(Status why, BootMs now);
  // Ends the backoff, because the cause of the failures is over.
  void RetryNow() {
    backoff_.Reset();
    retry_at_ = BootMs();
  }

  // Returns whether a request is in flight and not late, or the next attempt begins within kNear.
  bool near(BootMs now) const {
    if (trouble_.code() == Code::kExhausted) return false;
    return in_flight_ ? now - began_ < kSlow : retry_at_ - now <= kNear;
  }

  // The result of the last request; ok before the first.
  const Status& trouble() const { return trouble_; }

  // For a call that finds no number: makes it wait, or refuses it. EXHAUSTED when all numbers are
  // used up, STORE_DOWN while the source is unreachable; OVERLOADED if the call's patience ends
  // although the source answers.
  Verdict Answer(IssueCall& call, BootMs now) const;

  // Returns the refusal for a call that finds no number; empty if the source answers.
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
