#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/base/fork.h"
#include "server/issue/range_cursor.h"
#include "server/issue/segment/fetch_gate.h"
#include "server/issue/segment/pace.h"
#include "server/issue/segment/ranged_strategy.h"
#include "server/issue/segment/step_policy.h"

namespace firn {

// Rising numbers of one tag from ranges in memory, two at a time.
//
//  1. Numbers come from the current range, one fetch_sub each (RangeCursor). The next range takes
//     its place when it is used up.
//  2. The call that takes the current range down to the tag's mark has the next one fetched; so
//     does a call that finds nothing. One fetch is in flight at a time, its size is the policy's,
//     or what callers already wait for when that is more. Nothing is fetched before the first call.
//  3. A call that finds nothing waits while a fetch is in flight or about to be, and is refused
//     otherwise (FetchGate). Failed fetches are repeated by Tick, also when nobody calls.
//  4. Every range begins at or above the end of the one before; one that does not is thrown away.
//  5. Closed, it gives nothing. Stopped, it gives back the unused tail of what it took: the next
//     range, and the rest of the current one where the next goes on from it. A range that arrives
//     afterwards goes the same way.
//  6. What was in memory before a Drop, or lies below a `start` that was raised, is not given out
//     after it, also not by a batch that had got it and waits for more: that one is refused.
//  7. Abandoned, it is closed and gives nothing back: what it has is of another form than the tag.
//  8. In a forked child it is closed.
class Segment final : public RangedStrategy,
                      private LowWater,
                      public std::enable_shared_from_this<Segment> {
 public:
  // kUnavailable when there is no memory that a forked child would lose.
  static Result<std::shared_ptr<Segment>> Make(const TagDefinition& tag, RangedParts parts);
  ~Segment() override;

  bool TryOne(Method, int64_t* id) override { return cursor_.TakeOne(id); }
  RangeCursor* cursor() override { return &cursor_; }
  Verdict Issue(IssueCall& call) override;
  std::optional<Refusal> WhyNot() const override;
  void Close() override;
  void Stop() override;

  void Abandon() override;
  void Adjust(const TagDefinition& tag) override;
  void Tick(BootMs now) override;
  void Drop(const std::string& why) override;
  bool settled() const override;
  SegmentStatus status() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  Segment(const TagDefinition& tag, RangedParts parts, std::unique_ptr<ForkCells> cells,
          ForkCells::Cell& numbers);

  void OnLow() noexcept override;
  bool SwitchLocked(BootMs now);
  bool WantsNextLocked() const;
  int64_t SupplyLocked() const;
  Refusal ClosedLocked() const { return abandoned_ ? Redefined() : ClosedHere(); }
  bool IsStale(const IssueCall& call) const;
  Verdict RefuseStale(IssueCall& call);
  void NoteShortageLocked(IssueCall& call);
  void TrimLocked(int64_t start, BootMs now);
  void Fetch(Lock lock, BootMs now);
  void OnTaken(const Result<Range>& taken);
  Status KeepLocked(const Result<Range>& taken);
  void GiveBack(Lock lock);
  void OnGivenBack(const Status& status, Range tail);

  const RangedParts parts_;
  const ForkSentinel sentinel_;
  const std::unique_ptr<ForkCells> cells_;
  RangeCursor cursor_;

  mutable std::mutex mutex_;  // guards all below, and Load and Unload of the cursor
  std::shared_ptr<const TagDefinition> tag_;
  StepPolicy policy_;
  FetchGate gate_;
  std::optional<Range> next_;
  Range rest_;                       // of the current range, once closed
  int64_t mark_ = 1;                 // of the current range
  int64_t end_ = 0;                  // of the range taken last
  int64_t taken_ = 0;                // numbers, ever
  std::optional<BootMs> loaded_at_;  // the current range
  bool asked_ = false;               // somebody wants numbers of this tag
  int64_t shortage_ = 0;             // what callers wait for, beyond what is in flight
  uint64_t fetches_ = 0;             // begun
  // What was asked for or got before a change of it is not used after it. Read before numbers are
  // taken, changed after they were unloaded, under the mutex.
  std::atomic<uint64_t> drops_{0};
  uint64_t asked_drops_ = 0;  // drops_ when the fetch in flight began
  bool closed_ = false;
  bool stopped_ = false;
  bool abandoned_ = false;
  bool giving_back_ = false;
  SegmentStatus counts_;  // ranges, failures, wasted
  Pace pace_;
};

}  // namespace firn
