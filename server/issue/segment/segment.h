#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/fork.h"
#include "server/issue/range_cursor.h"
#include "server/issue/segment/ranged_strategy.h"

namespace firn {

// Issues rising numbers of one tag from ranges in memory, at most two at a time.
//
//  1. Calls take numbers from the current range, with one fetch_sub each (RangeCursor). When the
//     range is used up, the next range replaces it.
//  2. The next range is fetched when a call leaves fewer numbers than the tag's mark, or finds
//     none. StepPolicy determines its size. Nothing is fetched before the first call.
//  3. If the current range has too few numbers for a call for one run, the call wastes them and
//     continues with the next range.
//  4. A call that finds no numbers waits while a fetch is in flight or about to start; otherwise it
//     is refused (FetchGate). Failed fetches are repeated even without calls.
class Segment : public RangedStrategy, private LowWater {
 public:
  // kUnavailable if there is no memory that is zeroed in a forked child.
  static Result<std::shared_ptr<Segment>> Make(const TagDefinition& tag, RangedParts parts);

  bool TryOne(Method, int64_t* id) override { return cursor_.TakeOne(id); }
  RangeCursor* cursor() override { return &cursor_; }
  Verdict Issue(IssueCall& call) override;
  // Every range has at least this many numbers, except near the tag's last number.
  int64_t one_run_max() const override;

 protected:
  Segment(const TagDefinition& tag, RangedParts parts, std::unique_ptr<ForkCells> cells,
          ForkCells::Cell& numbers);

  RangeCursor& numbers() { return cursor_; }
  // Takes up to `count` numbers of one range. Returns an empty range if there are none: they have
  // been requested, and `why` is set if the next attempt is not near.
  Range TakeUpTo(int64_t count, Status* why);

  int64_t AskLocked() override { return std::min(policy_.Ask(), RangeCursor::kSizeMax); }
  bool TickLocked(BootMs now) override;

 private:
  bool IsRange(Range range) const override { return range.size() <= RangeCursor::kSizeMax; }
  Status KeepLocked(Range range, BootMs now) override;
  int64_t NextLocked() const override;
  int64_t SupplyLocked() const override;
  std::vector<Range> EmptyLocked() override;
  int64_t TrimLocked(int64_t start, BootMs now) override;
  void CloseLocked() override { rest_ = cursor_.Unload(); }
  std::optional<Refusal> WhyNotLocked(BootMs now) const override;
  void DescribeLocked(SegmentStatus& status) const override { status.wasted += cursor_.lost(); }

  void OnLow() noexcept override;
  bool SwitchLocked(BootMs now);
  // Adds the numbers taken to the call, or wastes them by rule 3.
  void Give(Range taken, IssueCall& call);

  const std::unique_ptr<ForkCells> cells_;
  RangeCursor cursor_;  // loaded and unloaded under the mutex, which also guards the members below

  std::optional<Range> next_;
  Range rest_;                       // of the current range, once closed
  int64_t mark_ = 1;                 // of the current range
  std::optional<BootMs> loaded_at_;  // when the current range was loaded
  bool asked_ = false;               // a call has found no number
};

}  // namespace firn
