#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/units.h"
#include "common/tag/tag_definition.h"

namespace firn {

// How many numbers to ask for at once: so many that a range lasts, at the present pace, for at
// least the tag's hold time, and seldom for more than twice that.
//
// A range used up sooner than the hold time doubles the step, up to the tag's step_max; one that
// lasted more than twice the hold time halves it, down to the tag's own step. A value.
class StepPolicy {
 public:
  explicit StepPolicy(const TagDefinition& tag) { Adjust(tag); }

  // The tag's definition has changed; what was learnt stays within the new limits.
  void Adjust(const TagDefinition& tag) {
    step_min_ = tag.step;
    step_max_ = tag.step_max;
    hold_ = std::chrono::minutes(tag.hold_minutes);
    step_ = std::clamp(step_, step_min_, step_max_);
  }

  // The range that is used up has lasted so long.
  void UsedUpIn(Milliseconds lasted) {
    if (lasted < hold_) {
      step_ = step_ > step_max_ / 2 ? step_max_ : step_ * 2;
    } else if (lasted > 2 * hold_) {
      step_ = std::max(step_min_, step_ / 2);
    }
  }

  int64_t step() const { return step_; }

  // What to ask for when callers already wait for `shortage` numbers.
  int64_t SizeFor(int64_t shortage) const { return std::max(step_, std::min(shortage, step_max_)); }

 private:
  int64_t step_ = 0;
  int64_t step_min_ = 1;
  int64_t step_max_ = 1;
  Milliseconds hold_{0};
};

}  // namespace firn
