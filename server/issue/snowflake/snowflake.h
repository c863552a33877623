#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/atomic.h"
#include "common/base/fork.h"
#include "common/id/claim.h"
#include "common/sequence/sequencer.h"
#include "common/sequence/tick_source.h"
#include "common/time/entropy.h"
#include "server/issue/strategy.h"
#include "server/issue/waiting_line.h"

namespace firn {

struct SnowflakeOptions {
  SequencerOptions sequencer;
  Milliseconds runs_max{100};  // one call may request the ids of ticks that span this time
};

// Issues ids that consist of time, machine id and sequence. All tags share one sequence, so create
// one object per server.
//
// 1. Ids are issued under the claim adopted last. Before the first claim, calls are refused with
//    NOT_READY.
// 2. Each claim gets a new sequencer. It is published before the old one is closed, so a call that
//    finds its sequencer closed reads the current one and retries.
// 3. Closed sequencers are kept until destruction: a thread may still be about to use one.
// 4. Calls for more ids than a tick has are served one after another (WaitingLine). Smaller calls
//    wait for no other call.
//
// Thread-safe. Only the claim's keeper calls Adopt, CloseClaim and Last. In a forked child, every
// call is refused, and no call hangs on a lock that the parent held. The object may be destroyed
// there.
//
// All claims must come from one keeper that never passes a claim twice. The keeper is responsible
// for holding the claim.
class Snowflake final : public Strategy {
 public:
  static constexpr size_t kClaimsMax =
      100'000;  // in the lifetime of this object, about 300 bytes each

  // `ticks` and `entropy` must outlive this; `entropy` is used in Adopt only.
  Snowflake(TickSource& ticks, Entropy& entropy, SnowflakeOptions options = {});
  ~Snowflake() override;

  // Starts to issue ids under `claim`, and raises the id clock to at least the claim's first tick.
  // After an error, the previous claim remains in use. kInvalid for a claim of another layout, a
  // machine id wider than its field, or a layout that Start refuses. kUnavailable after Close, in a
  // forked child, and if the system has no memory that is zeroed in a forked child. kExhausted
  // after kClaimsMax claims.
  Status Adopt(std::shared_ptr<const Claim> claim);

  // Ends the claim: after the return, nothing is issued until a new claim is adopted. Returns the
  // last tick used under the claim adopted last, or the tick before its first if none was used. A
  // repeated call returns the same tick; otherwise the keeper would assume that the claim was
  // unused, and would give back ticks whose ids were issued. Empty if there was no claim, and in a
  // forked child.
  std::optional<Tick> CloseClaim();

  // Like CloseClaim, but does not end the claim. A later tick may already be in use on return.
  std::optional<Tick> Last() const;

  std::string_view name() const override { return "snowflake"; }
  // kInvalid if the layout's method field is too narrow for every Method.
  Status Start() override { return CheckLayout(); }
  bool TryOne(Method method, int64_t* id) override;
  bool TryRun(Method method, int64_t want, IdRun* run) override;
  Verdict Issue(IssueCall& call) override;
  std::optional<Refusal> WhyNot() const override;
  int64_t NextAtLeast() const override;
  int64_t count_max() const override { return count_max_; }
  void Close() override;
  void Stop() override { Close(); }

  bool NeedsTicks(const IssueCall& call) const { return call.request().count > tick_ids_; }
  size_t waiting() const { return sentinel_.InChild() ? 0 : line_.length(); }

 private:
  struct ClaimSequence;  // a claim and the sequence under it

  Step ServeLine(const ClaimSequence& held, Tick now);
  std::chrono::microseconds TimeOf(Tick tick) const { return tick.count() * tick_time_; }
  std::chrono::microseconds BestFor(const IssueCall& call, Tick now) const {
    return ticks_.Until(now + (call.missing() - 1) / tick_ids_);
  }
  Step TakeFor(const Runs& runs, int64_t missing, const ClaimSequence& held, Tick now) const;
  ClaimSequence* Held() const;
  IdRun RunOf(const ClaimSequence& held, const Step& step, Method method) const;
  Verdict Answer(const ClaimSequence& held, const Step& step, IssueCall& call) const;
  Refusal ClockIsBehind() const;
  Refusal LayoutHasEnded() const;
  bool FitsInto(const Claim& claim, Tick now, int64_t count) const;
  Status CheckLayout() const;
  Status CheckClaim(const Claim& claim) const;

  TickSource& ticks_;
  Entropy& entropy_;
  const Layout layout_;
  const SequencerOptions sequencer_options_;
  const int64_t count_max_;
  const int64_t tick_ids_;
  const Milliseconds tick_time_;
  WaitingLine line_;

  Atomic<ClaimSequence*> current_{nullptr};  // null: no claim. Written under mutex_
  const ForkSentinel
      sentinel_;  // checked before locking, because in a child mutex_ may be locked forever
  mutable Mutex mutex_;
  ForkCells cells_;
  bool closed_ = false;                                    // under mutex_
  std::vector<std::unique_ptr<ClaimSequence>> sequences_;  // under mutex_
};

}  // namespace firn
