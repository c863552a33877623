#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fork.h"
#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/fetch_gate.h"
#include "server/issue/segment/pace.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/segment/step_policy.h"
#include "server/issue/strategy.h"

namespace firn {

// What a strategy that lives on ranges is made of; everything outlives it, but `news`.
struct RangedParts {
  RangeSource& source;
  const Clock& clock;
  Entropy& entropy;
  // Calls that wait may have more luck now. Called on the source's threads; may be empty.
  std::function<void()> news{};
};

// How a segment tag is doing here.
struct SegmentStatus {
  int64_t supply = 0;                       // numbers in memory
  double per_second = 0;                    // given out, over the last seconds
  std::optional<int64_t> supply_seconds{};  // at that pace; empty: nobody asks
  int64_t step = 0;                         // what is asked for next
  int64_t ranges = 0;                       // taken, ever
  int64_t failures = 0;                     // to take one, ever
  int64_t wasted = 0;                       // numbers that were taken and will never be given out
  std::string trouble{};                    // why no more come; empty: they do
  StoodIn stood_in{};                       // the tag's ledger, for its store
};

// One segment tag's strategy: what all kinds have in common is its talk with the source of its
// ranges, and how it ends. What a kind keeps of a range, and how it gives numbers, it says itself;
// what ends in Locked is called under the mutex. Thread-safe.
//
//  1. One question is with the source at a time; a failed one is repeated by Tick (FetchGate).
//  2. A range begins at or above the end of the one before, or is thrown away.
//  3. What was in memory before a Drop, or lies below a `start` that was raised, is not given out
//     after it, also not by a call that had got a part of it and waits for more: that one is
//     refused.
//  4. Closed, it gives nothing. Stopped, it gives back the unused tail of what it took, once
//     nothing is in flight any more.
//  5. Abandoned, it is stopped and gives nothing back: what it has is of another form than the tag.
//  6. In a forked child it is closed.
class RangedStrategy : public Strategy, public std::enable_shared_from_this<RangedStrategy> {
 public:
  static constexpr int64_t kCountMax = 10'000'000;

  std::string_view name() const override { return "segment"; }
  Status Start() final { return {}; }
  int64_t count_max() const final { return kCountMax; }
  std::optional<Refusal> WhyNot() const final;
  void Close() final;
  void Stop() final;

  // The tag is defined like this from now on; same name, form, store and buffer as before. Numbers
  // below its start are not given out after it has returned.
  void Adjust(const TagDefinition& tag);

  // Does what is due. Call every 10 ms or so.
  void Tick(BootMs now);

  // The tag has another form now (FormOf): nothing is given out after it has returned, what is in
  // memory is wasted, and calls that wait are told to come again. Never undone.
  void Abandon();

  // Numbers in memory may belong to others: none of them is given out after it has returned. It
  // goes on with the next range that the source gives.
  void Drop(const std::string& why);

  // After Stop: nothing is on its way any more.
  bool settled() const;

  SegmentStatus status() const;

 protected:
  using Lock = std::unique_lock<std::mutex>;

  RangedStrategy(const TagDefinition& tag, RangedParts parts);

  // --- what a kind says -------------------------------------------------------------------------

  // Whether these can be numbers of one range of this tag.
  virtual bool IsRange(Range) const { return true; }
  // A range has come that may be given out.
  virtual Status KeepLocked(Range range, BootMs now) = 0;
  // None has come: what to tell callers of it.
  virtual Status FailedLocked(Status why, BootMs) { return why; }
  // How many numbers to ask for; 0: none after all.
  virtual int64_t AskLocked(BootMs now) = 0;
  // Does what is due; true when numbers are wanted before somebody asks for more.
  virtual bool TickLocked(BootMs now) = 0;
  // Whether the next question follows upon the answer at once.
  virtual bool HurriesLocked() const { return false; }

  virtual int64_t SupplyLocked() const = 0;
  // Takes everything out of memory: the ranges in the order of their numbers.
  virtual std::vector<Range> EmptyLocked() = 0;
  // Numbers below `start` go out of memory; how many those were.
  virtual int64_t TrimLocked(int64_t start, BootMs now) = 0;
  // Nothing may be given after it.
  virtual void CloseLocked() {}
  // Asked while it is open.
  virtual std::optional<Refusal> WhyNotLocked(BootMs now) const { return gate_.WhyNot(now); }
  virtual void DescribeLocked(SegmentStatus&) const {}

  // --- for the kinds ----------------------------------------------------------------------------

  // When gate_ is open. Without the mutex afterwards, and the answer may have come.
  void Fetch(Lock lock, BootMs now);

  // Rule 3, for what a call has got. Call it before numbers are taken for it.
  bool IsStale(IssueCall& call) const;
  Verdict RefuseStaleLocked(IssueCall& call);
  Refusal ClosedNowLocked() const { return abandoned_ ? Redefined() : ClosedHere(); }

  // Answers to calls that came too late.
  static Refusal ClosedHere() {
    return {Reason::kDraining, "this tag is closed on this server", 1, true};
  }
  static Refusal Redefined() {
    return {Reason::kNotReady, "the tag has just been defined in another way: ask again", 1, true};
  }

  const RangedParts parts_;
  const ForkSentinel sentinel_;

  mutable std::mutex mutex_;  // guards all below
  std::shared_ptr<const TagDefinition> tag_;
  StepPolicy policy_;
  FetchGate gate_;
  int64_t end_ = 0;  // of the range taken last
  bool closed_ = false;
  SegmentStatus counts_;  // ranges, failures, wasted

 private:
  void OnTaken(const Result<Range>& taken);
  Status TakeInLocked(Range range, BootMs now);
  void GiveBack(Lock lock);
  void OnGivenBack(const Status& status, Range tail);

  int64_t taken_ = 0;  // numbers, ever
  // What was asked for or got before a change of it is not used after it. Read before numbers are
  // taken, changed after they went out of memory, under the mutex.
  std::atomic<uint64_t> drops_{0};
  uint64_t asked_drops_ = 0;  // drops_ when the fetch in flight began
  bool stopped_ = false;
  bool abandoned_ = false;
  bool giving_back_ = false;
  Pace pace_;
};

}  // namespace firn
