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

// Dependencies of a strategy that uses ranges; all but `news` must outlive it.
struct RangedParts {
  RangeSource& source;
  const Clock& clock;
  Entropy& entropy;
  // Called when waiting calls may succeed, on the source's threads; may be empty.
  std::function<void()> news{};
};

// The state of a segment tag on this server.
struct SegmentStatus {
  int64_t supply = 0;                       // numbers in memory
  double per_second = 0;                    // issued, averaged over some seconds
  std::optional<int64_t> supply_seconds{};  // at that rate; empty: there are no calls
  int64_t step = 0;                         // size of the next request
  int64_t ranges = 0;                       // taken since the start
  int64_t failures = 0;                     // to take a range, since the start
  int64_t wasted = 0;                       // numbers that were taken and will never be issued
  std::string trouble{};                    // why no more arrive; empty: they arrive
  StoodIn stood_in{};                       // how the tag's ledger replaced its store
  std::string owner{};  // buffer = owner: address of the server that owns the numbers, if known
};

// One segment tag's strategy. This class requests ranges from the source and handles Close and
// Stop. Each kind defines what it keeps of a range and how it issues numbers. Functions whose names
// end in Locked are called under the mutex. Thread-safe.
//
//  1. One request to the source is in flight at a time; Tick repeats a failed one (FetchGate).
//  2. A range begins at or above the end of the one before, or is discarded.
//  3. Numbers that were in memory before a Drop, or lie below a raised `start`, are not issued
//     after it. A waiting call that holds some of them is refused.
//  4. After Close it issues nothing. Stop gives back the unused tail once nothing is in flight.
//  5. Abandon stops it and gives nothing back: its numbers have another form than the tag.
//  6. In a forked child it is closed.
class RangedStrategy : public Strategy, public std::enable_shared_from_this<RangedStrategy> {
 public:
  static constexpr int64_t kCountMax = 10'000'000;

  std::string_view name() const override { return "segment"; }
  Status Start() final { return {}; }
  int64_t count_max() const final { return kCountMax; }
  void TakeBack(const IssueCall& call) final;
  bool HasDropped(const IssueCall& call) const final {
    return sentinel_.InChild() || call.drops != drops_.load(std::memory_order_acquire);
  }
  int64_t NextAtLeast() const override;
  std::optional<Refusal> WhyNot() const override;
  void Close() override;
  void Stop() override;

  // Changes the tag's definition; name, form, store and buffer must be the same. Numbers below the
  // new start are not issued after it has returned.
  virtual void Adjust(const TagDefinition& tag);

  // Does the work that is due. Returns true if it must be called again in about 10 ms. Otherwise
  // call it once a second, and at once after `news`, Adjust or Drop.
  virtual bool Tick(BootMs now);

  // The tag has another form now (FormOf): nothing is issued after this has returned, the numbers
  // in memory are wasted, and waiting calls are refused with a hint to retry. Never undone.
  virtual void Abandon();

  // Discards the numbers in memory, which other servers may issue: none of them is issued after
  // this has returned. Continues with the next range of the source.
  virtual void Drop(const std::string& why);

  // Removes the numbers from memory and gives the unused tail back: another server issues the
  // tag's numbers now. Numbers that are still requested will not be used.
  void HandOver();

  const std::string& tag() const { return name_; }

  // After Stop: true once nothing is in flight.
  virtual bool settled() const;

  virtual SegmentStatus status() const;

 protected:
  using Lock = std::unique_lock<std::mutex>;

  RangedStrategy(const TagDefinition& tag, RangedParts parts);

  // --- defined by each kind ----------------------------------------------------------------------

  // Whether these can be numbers of one range of this tag.
  virtual bool IsRange(Range) const { return true; }
  // Stores a range whose numbers may be issued.
  virtual Status KeepLocked(Range range, BootMs now) = 0;
  // No range has arrived. Returns the error that callers get.
  virtual Status FailedLocked(Status why, BootMs) { return why; }
  // How many numbers to request; 0: none.
  virtual int64_t AskLocked(BootMs now) = 0;
  // Does the work that is due; true if the next range should be fetched.
  virtual bool TickLocked(BootMs now) = 0;
  // False if work becomes due with time alone, without a call.
  virtual bool IsIdleLocked() const { return true; }
  // Whether the next request follows an answer at once.
  virtual bool IsUrgentLocked() const { return false; }

  virtual int64_t SupplyLocked() const = 0;
  // Removes all numbers from memory and returns them as ranges, ascending.
  virtual std::vector<Range> EmptyLocked() = 0;
  // Removes numbers below `start` from memory; returns how many.
  virtual int64_t TrimLocked(int64_t start, BootMs now) = 0;
  // No call issues a number below it from now on.
  virtual int64_t NextLocked() const { return end_; }
  // A call has ended without these numbers. Returns how many of them are wasted.
  virtual int64_t TakeBackLocked(const Runs& runs) { return runs.count(); }
  // Nothing may be issued after it.
  virtual void CloseLocked() {}
  // Called only while it is open.
  virtual std::optional<Refusal> WhyNotLocked(BootMs now) const { return gate_.WhyNot(now); }
  virtual void DescribeLocked(SegmentStatus&) const {}

  // --- for the kinds ----------------------------------------------------------------------------

  // Call only if gate_ is open. Releases the mutex; the answer may have arrived on return.
  void Fetch(Lock lock, BootMs now);

  // Whether rule 3 forbids the numbers that the call holds. Must be called before more are taken
  // for it.
  bool IsStale(IssueCall& call) const;
  static Verdict RefuseStale(IssueCall& call);
  Refusal ClosedNowLocked() const { return abandoned_ ? Redefined() : ClosedHere(); }

  static Refusal ClosedHere() {
    return {Reason::kDraining, "this tag is closed on this server", 1, true};
  }
  static Refusal Redefined() {
    return {Reason::kNotReady, "the tag's definition has just changed; try again", 1, true};
  }

  const RangedParts parts_;
  const std::string name_;  // of the tag
  const ForkSentinel sentinel_;

  mutable std::mutex mutex_;  // guards the members below
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
  // Counts drops and raised starts: numbers requested or taken before a change are not used after
  // it. Read before numbers are taken; changed under the mutex, after they were removed from
  // memory.
  std::atomic<uint64_t> drops_{0};
  uint64_t asked_drops_ = 0;  // drops_ when the fetch in flight began
  bool stopped_ = false;
  bool abandoned_ = false;
  bool giving_back_ = false;
  bool handed_over_ = false;  // while the fetch was in flight
  Pace pace_;
};

}  // namespace firn
