#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/units.h"

namespace firn {

// Determines the size of the next fetch, so that a fetch lasts about the desired time at the recent
// rate.
//  1. The first size is kFirst.
//  2. If a fetch was used up in less than half the time, or calls found nothing, the next size
//     doubles. If it was used up in less than a sixteenth of the time, the next size is eight times
//     as large.
//  3. If a fetch lasted more than twice the time, the next size is half as large.
//  4. A refusal of a size limits it to at most half for 1 min.
//
// A value, thread-compatible.
class FetchSize {
 public:
  static constexpr int64_t kFirst = 128;
  static constexpr Milliseconds kRefusedFor{60'000};

  // `max` and `lasts` must be at least 1.
  FetchSize(int64_t max, Milliseconds lasts) : max_(max), lasts_(lasts) {}

  int64_t Next(BootMs now) const {
    const int64_t size = std::min(size_, max_);
    return refused_until_ && now < *refused_until_ ? std::min(size, refused_max_) : size;
  }

  // Records that a fetch was used up in `took`; `starved`: calls found nothing in the meantime.
  void Used(Milliseconds took, bool starved) {
    if (took > 2 * lasts_) {
      size_ = std::max<int64_t>(1, size_ / 2);
    } else if (took < lasts_ / 16) {
      size_ = std::min(max_, size_ * 8);
    } else if (starved || took < lasts_ / 2) {
      size_ = std::min(max_, size_ * 2);
    }
  }

  // Records that a server refused `count` ids as too many. Returns false if `count` was 1.
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
