#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/base/atomic.h"
#include "common/base/status.h"

namespace firn {

// Words of memory that a forked child finds as zero, whatever its parent had put there: what a
// process may do once only (issue, renew, give back) must not be done again by its copy. Whoever
// uses a cell lets 0 mean "closed".
//
// Each cell has a cache line of its own. Cells live as long as this object and are never handed out
// twice. Thread-safe.
class ForkCells {
 public:
  using Cell = Atomic<uint64_t>;

  static constexpr size_t kPagesMax = 1 << 14;

  ForkCells() = default;
  ~ForkCells();
  ForkCells(const ForkCells&) = delete;
  ForkCells& operator=(const ForkCells&) = delete;

  // A cell that holds 0. kUnavailable when the kernel gives no such memory (Linux 4.14 and later
  // do), kExhausted after a million cells. The cell is owned by this object.
  Result<Cell*> Take();

 private:
  Status AddPage();

  std::mutex mutex_;
  std::vector<std::byte*> pages_;  // under mutex_
  size_t used_ = 0;                // under mutex_: bytes of the last page
};

// Whether this is still the process that made the object. One load.
class ForkSentinel {
 public:
  // Where the kernel has no memory of that kind, ends the process: it could not keep its promise.
  ForkSentinel();

  bool InChild() const { return cell_->load(std::memory_order_relaxed) == 0; }

 private:
  ForkCells cells_;
  ForkCells::Cell* cell_;
};

}  // namespace firn
