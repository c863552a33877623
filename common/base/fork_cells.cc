#include "common/base/fork_cells.h"

#include <new>

#include <sys/mman.h>

namespace firn {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kCellBytes = 64;

}  // namespace

ForkCells::~ForkCells() {
  for (std::byte* page : pages_) munmap(page, kPageBytes);
}

Result<ForkCells::Cell*> ForkCells::Take() {
  const std::lock_guard lock(mutex_);
  if (pages_.empty() || used_ == kPageBytes) FIRN_TRY(AddPage());
  std::byte* place = pages_.back() + used_;
  used_ += kCellBytes;
  return new (place) Cell(0);
}

Status ForkCells::AddPage() {
  if (pages_.size() == kPagesMax) return Exhausted("a process has a million fork cells at most");
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return Unavailable("no memory for a page of fork cells");
  if (madvise(page, kPageBytes, MADV_WIPEONFORK) != 0) {
    munmap(page, kPageBytes);
    return Unavailable("this kernel cannot wipe memory in a forked child (MADV_WIPEONFORK)");
  }
  pages_.push_back(static_cast<std::byte*>(page));
  used_ = 0;
  return {};
}

ForkSentinel::ForkSentinel() {
  Result<ForkCells::Cell*> cell = cells_.Take();
  if (!cell.ok()) Die(cell.status().ToString());
  cell_ = *cell;
  cell_->store(1, std::memory_order_relaxed);
}

}  // namespace firn
