#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/units.h"

namespace firn {

// How many ids to fetch next, so that a fetch lasts about as long as it should at the rate of late.
//
//  1. It begins with kFirst.
//  2. Used up in less than half the time, or with calls that found nothing: twice as many next, and
//     eight times as many when it took less than a sixteenth.
//  3. Lasted more than twice the time: half as many.
//  4. Refused as too many: at most half as many for a minute.
//
// A value, thread-compatible.
class FetchSize {
 public:
  static constexpr int64_t kFirst = 128;
  static constexpr Milliseconds kRefusedFor{60'000};

  // `max` and `lasts` at least 1.
  FetchSize(int64_t max, Milliseconds lasts) : max_(max), lasts_(lasts) {}

  int64_t Next(BootMs now) const {
    const int64_t size = std::min(size_, max_);
    return refused_until_ && now < *refused_until_ ? std::min(size, refused_max_) : size;
  }

  // A fetch has been used up in `took`; `starved`: calls found nothing meanwhile.
  void Used(Milliseconds took, bool starved) {
    if (took > 2 * lasts_) {
      size_ = std::max<int64_t>(1, size_ / 2);
    } else if (took < lasts_ / 16) {
      size_ = std::min(max_, size_ * 8);
    } else if (starved || took < lasts_ / 2) {
      size_ = std::min(max_, size_ * 2);
    }
  }

  // A server would not give `count` at once. False when not even one is too few.
  bool Refused(int64_t count, BootMs now) {
    if (count <= 1) return false;
    refused_max_ = count / 2;
    refused_until_ = now + kRefusedFor;
    return true;
  }

 private:
  const int64_t max_;
  const Milliseconds lasts_;
  int64_t size_ = kFirst;
  int64_t refused_max_ = 0;
  std::optional<BootMs> refused_until_{};
};

}  // namespace firn
