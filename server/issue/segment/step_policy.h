#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "server/issue/issue_call.h"
#include "server/issue/range.h"

namespace firn {

// Determines how many numbers to request, and when. At the current rate, a range should last for at
// least the tag's hold time, and rarely for more than twice that. If waiting callers need more, the
// request is for that many.
//
// A range that is used up within the hold time doubles the step, up to the tag's step_max. A range
// that lasts for more than twice the hold time halves it, down to the tag's `step`. A value.
class StepPolicy {
 public:
  explicit StepPolicy(const TagDefinition& tag) { Adjust(tag); }

  // Applies a changed definition; the learnt step is clamped to the new limits.
  void Adjust(const TagDefinition& tag) {
    step_min_ = tag.step;
    step_max_ = tag.step_max;
    hold_ = std::chrono::minutes(tag.hold_minutes);
    prefetch_at_ = tag.prefetch_at;
    step_ = std::clamp(step_, step_min_, step_max_);
  }

  // Returns how many numbers of `range` are left when the next range is fetched.
  int64_t MarkOf(const Range& range) const {
    const int64_t used =
        range.size() / 100 * prefetch_at_ + range.size() % 100 * prefetch_at_ / 100;
    return std::max<int64_t>(1, range.size() - used);
  }

  // Records how long a used-up range lasted.
  void UsedUpIn(Milliseconds lasted) {
    if (lasted < hold_) {
      step_ = step_ > step_max_ / 2 ? step_max_ : step_ * 2;
    } else if (lasted > 2 * hold_) {
      step_ = std::max(step_min_, step_ / 2);
    }
  }

  int64_t step() const { return step_; }

  // Records that a call waits for numbers. Counts the call once for each request whose answer could
  // serve it.
  void Waits(IssueCall& call) {
    if (call.ticket > asked_) return;
    call.ticket = asked_ + 1;
    shortage_ = std::min(shortage_, kRangeEnd - call.missing()) + call.missing();
  }

  // Records that callers who are not counted by Waits need `count` numbers at once.
  void Needs(int64_t count) { shortage_ = std::max(shortage_, count); }

  // Returns how many numbers to request now, and counts the request.
  int64_t Ask() {
    ++asked_;
    return std::max(step_, std::min(std::exchange(shortage_, 0), step_max_));
  }

 private:
  int64_t step_ = 0;
  int64_t step_min_ = 1;
  int64_t step_max_ = 1;
  int64_t prefetch_at_ = 0;  // percentage of a range that is used when the next one is fetched
  Milliseconds hold_{0};
  int64_t shortage_ = 0;  // numbers that callers wait for and that have not been requested
  uint64_t asked_ = 0;    // number of requests
};

}  // namespace firn
