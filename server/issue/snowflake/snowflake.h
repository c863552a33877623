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
  Milliseconds runs_max{100};  // one call may ask for as many ids as these ticks hold
};

// Ids of time, machine and sequence. One sequence for all tags: make one object for a server.
//
// 1. It issues under the claim that it was given last, and under none before that: NOT_READY.
// 2. Each claim gets a new sequencer. A new one is there before the old one is closed, so a call
//    that finds its sequencer closed looks once more.
// 3. Closed sequencers are kept until this object goes: a thread may have been on its way to one.
// 4. Calls for more ids than a tick has get them one after another (WaitingLine). Smaller ones wait
//    for no other call.
//
// Thread-safe. Adopt, CloseClaim and Last belong to the claim's keeper; the rest to anybody. In a
// forked child every call is refused and none hangs, whatever the parent was doing; it may be
// destroyed there.
//
// Sharp edge: claims must come from one keeper that never gives one claim twice. Whether a claim is
// truly held is the keeper's business.
class Snowflake final : public Strategy {
 public:
  static constexpr size_t kClaimsMax = 100'000;  // in the life of this object, about 300 bytes each

  // `ticks` and `entropy` must outlive this; `entropy` is used in Adopt only.
  Snowflake(TickSource& ticks, Entropy& entropy, SnowflakeOptions options = {});
  ~Snowflake() override;

  // From now on ids are issued under `claim`, and the id clock is at its first tick or beyond.
  // Refused, with the claim before left as it is: kInvalid for a claim of another layout, for a
  // machine id wider than its field and for a layout that Start refuses; kUnavailable after
  // Close, in a forked child and when there is no memory that one would lose; kExhausted after
  // kClaimsMax claims.
  Status Adopt(std::shared_ptr<const Claim> claim);

  // Ends the claim: nothing is issued under it after this has returned, until a new one is adopted.
  // The last tick that was used under the claim adopted last, the one before its first if none, and
  // the same again when it is closed already: a keeper that took it for unused would give stamps
  // back that are out. Empty when there has been no claim, and in a forked child.
  std::optional<Tick> CloseClaim();

  // The same without ending it: what it has used at least, at this moment.
  std::optional<Tick> Last() const;

  std::string_view name() const override { return "snowflake"; }
  // kInvalid for a layout whose method field has no room for every Method.
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
      sentinel_;  // looked at before locking: a child's mutex_ may be locked for ever
  mutable Mutex mutex_;
  ForkCells cells_;
  bool closed_ = false;                                    // under mutex_
  std::vector<std::unique_ptr<ClaimSequence>> sequences_;  // under mutex_
};

}  // namespace firn
