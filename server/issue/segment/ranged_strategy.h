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

// Dependencies of a strategy that uses ranges. All but the functions must outlive the strategy.
struct RangedParts {
  RangeSource& source;
  const Clock& clock;
  Entropy& entropy;
  // Called on the source's threads when waiting calls may succeed; may be empty.
  std::function<void()> news{};
  // Called on any thread when Tick must be called soon; may be empty. `news` implies it.
  std::function<void()> stir{};
};

// The state of a segment tag on this server.
struct SegmentStatus {
  int64_t supply = 0;                       // numbers in memory
  double per_second = 0;                    // issued, averaged over some seconds
  std::optional<int64_t> supply_seconds{};  // at that rate; empty: there are no calls
  int64_t step = 0;                         // size of the next request
  int64_t ranges = 0;                       // number of ranges taken since the start
  int64_t failures = 0;                     // failed attempts to take a range since the start
  int64_t wasted = 0;                       // numbers of taken ranges that will never be issued
  std::string trouble{};                    // why no numbers arrive; empty: no problem
  StoodIn stood_in{};                       // how the tag's ledger stood in for its store
  std::string owner{};   // buffer = owner: address of the server that owns the numbers, if known
  WallMs owner_since{};  // by the registry's clock; 0: unknown
};

// Base class of segment strategies, for one tag. Requests ranges from the source and handles Close
// and Stop. A subclass stores the ranges and issues their numbers. Functions whose names end in
// Locked are called under the mutex. Thread-safe.
//
//  1. One request to the source is in flight at a time; Tick repeats a failed one (FetchGate).
//  2. A range that begins below the end of the previous one is discarded.
//  3. After a Drop, numbers that were in memory before are not issued; after `start` was raised,
//     numbers below it are not issued. A waiting call that holds such numbers is refused.
//  4. After Close, nothing is issued. Stop gives back the unused tail once nothing is in flight.
//  5. Abandon stops without giving numbers back, because they have another form than the tag.
//  6. In a forked child, the strategy is closed.
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

  // Changes the tag's definition; name, form, store and buffer must be the same. After the return,
  // no number below the new start is issued.
  virtual void Adjust(const TagDefinition& tag);

  // Does the work that is due. Returns true if the caller must call this again in about 10 ms.
  // Otherwise call it once a second, and soon after `news`, `stir`, Adjust or Drop.
  virtual bool Tick(BootMs now);

  // Called when the tag has another form now (FormOf). After the return, nothing is issued; the
  // numbers in memory are wasted, and waiting calls are refused with a hint to retry. Permanent.
  virtual void Abandon();

  // Discards the numbers in memory, because other servers may issue them: after the return, none of
  // them is issued. Continues with the source's next range.
  virtual void Drop(const std::string& why);

  // Called when another server takes over the tag's numbers. Removes the numbers from memory and
  // gives the unused tail back. Numbers of a request in flight will not be used.
  void HandOver();

  const std::string& tag() const { return name_; }

  // After Stop: returns true once nothing is in flight.
  virtual bool settled() const;

  virtual SegmentStatus status() const;

 protected:
  using Lock = std::unique_lock<std::mutex>;

  RangedStrategy(const TagDefinition& tag, RangedParts parts);

  // --- defined by each kind ----------------------------------------------------------------------

  // Returns whether these numbers can be one range of this tag.
  virtual bool IsRange(Range) const { return true; }
  // Stores a range whose numbers may be issued.
  virtual Status KeepLocked(Range range, BootMs now) = 0;
  // Handles a failed request. Returns the error for callers.
  virtual Status FailedLocked(Status why, BootMs) { return why; }
  // Returns how many numbers to request; 0: none.
  virtual int64_t AskLocked() = 0;
  // Does the work that is due. Returns true if the next range should be fetched.
  virtual bool TickLocked(BootMs now) = 0;
  // Returns false if work can become due without a call, as time passes.
  virtual bool IsIdleLocked() const { return true; }
  // Returns whether the next request is sent as soon as an answer arrives.
  virtual bool IsUrgentLocked() const { return false; }

  virtual int64_t SupplyLocked() const = 0;
  // Removes all numbers from memory and returns them as ranges, ascending.
  virtual std::vector<Range> EmptyLocked() = 0;
  // Removes numbers below `start` from memory. Returns their number.
  virtual int64_t TrimLocked(int64_t start, BootMs now) = 0;
  // Returns a lower bound of the numbers that are issued from now on.
  virtual int64_t NextLocked() const { return end_; }
  // Called when the call with this ticket ended; 0: it had none.
  virtual void ForgetLocked(uint64_t) {}
  // Called when a call ended without using these numbers. Returns how many of them are wasted.
  virtual int64_t TakeBackLocked(const Runs& runs) { return runs.count(); }
  // After the return, nothing may be issued.
  virtual void CloseLocked() {}
  // Called only before Close.
  virtual std::optional<Refusal> WhyNotLocked(BootMs now) const { return gate_.WhyNot(now); }
  virtual void DescribeLocked(SegmentStatus&) const {}

  // --- for the kinds ----------------------------------------------------------------------------

  // Sends a request. gate_ must be open. Releases the mutex; the answer may arrive before the
  // return.
  void Fetch(Lock lock, BootMs now);

  // Returns whether rule 3 forbids the numbers that the call holds. Must be called before the call
  // takes more numbers.
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
  int64_t end_ = 0;  // end of the range taken last
  bool closed_ = false;
  SegmentStatus counts_;  // ranges, failures, wasted

 private:
  void OnTaken(const Result<Range>& taken);
  Status TakeInLocked(Range range, BootMs now);
  void GiveBack(Lock lock);
  void OnGivenBack(const Status& status, Range tail);

  int64_t taken_ = 0;  // total of all numbers taken
  // Counts drops and raised starts. Numbers requested or taken before a change are not used after
  // it. A call reads the counter before it takes numbers; it is changed under the mutex, after
  // numbers were removed from memory.
  std::atomic<uint64_t> drops_{0};
  uint64_t asked_drops_ = 0;  // drops_ when the fetch in flight began
  bool stopped_ = false;
  bool abandoned_ = false;
  bool giving_back_ = false;
  bool handed_over_ = false;  // HandOver was called while the fetch was in flight
  Pace pace_;
};

}  // namespace firn
