#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// Tags whose last call timed out in the database, for example because of a lock on their row. A
// store has one thread, so such a tag would delay all others. Therefore all late tags together get
// at most a fifth of the thread's time. Thread-compatible.
class LateTags {
 public:
  static constexpr int kOthersShare = 4;  // pause after a late call, as a multiple of its duration
  static constexpr Milliseconds kPauseMin{100};

  explicit LateTags(const Clock& clock) : clock_(clock) {}  // must outlive this

  // Returns ok if the tag may be tried now, otherwise its last error.
  Status MayAsk(const std::string& tag) const {
    const auto late = late_.find(tag);
    return late == late_.end() || clock_.Boot() >= not_before_ ? Status() : late->second;
  }

  void GaveUp(const std::string& tag, const Status& why, BootMs began) {
    const BootMs now = clock_.Boot();
    late_[tag] = why;
    not_before_ = now + std::max(kPauseMin, kOthersShare * (now - began));
  }
  void Answered(const std::string& tag) { late_.erase(tag); }

 private:
  const Clock& clock_;
  std::map<std::string, Status> late_;  // late tags with their last errors
  BootMs not_before_{};                 // when the next late tag may be tried
};

}  // namespace firn
