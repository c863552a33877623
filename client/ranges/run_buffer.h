#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/id/id_run.h"

namespace firn {

// The runs of one fetch, used from the front. A value, thread-compatible.
class RunBuffer {
 public:
  RunBuffer() = default;
  // `asked_at`: no id was issued before this time.
  RunBuffer(std::vector<IdRun> runs, BootMs asked_at)
      : runs_(std::move(runs)), asked_at_(asked_at) {
    for (const IdRun& run : runs_) size_ += run.count;
    left_ = size_;
  }

  int64_t size() const { return size_; }
  int64_t left() const { return left_; }
  BootMs asked_at() const { return asked_at_; }

  // Takes up to `count` ids, at least one. The buffer must not be empty.
  IdRun Cut(int64_t count) {
    const IdRun& run = runs_[run_];
    const IdRun piece{run.At(used_), std::min(count, run.count - used_), run.stride};
    left_ -= piece.count;
    used_ += piece.count;
    if (used_ == run.count) {
      ++run_;
      used_ = 0;
    }
    return piece;
  }

 private:
  std::vector<IdRun> runs_;
  BootMs asked_at_;
  int64_t size_ = 0;
  int64_t left_ = 0;
  size_t run_ = 0;    // index of the current run
  int64_t used_ = 0;  // used ids of that run
};

}  // namespace firn
