#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/base/atomic.h"
#include "common/base/status.h"

namespace firn {

// Protection of resources in a forked child. A child has the parent's memory but not its threads,
// so it must check a ForkSentinel before it locks a mutex that another thread may have held.

// Words of memory that are zero in a forked child, regardless of the parent's values. Use them for
// actions that a process may do only once (issue, renew, release) and that its child must not
// repeat: let 0 mean "closed".
//
// Each cell has its own cache line. Cells live as long as this object and are never reused.
// Thread-safe.
class ForkCells {
 public:
  using Cell = Atomic<uint64_t>;

  static constexpr size_t kPagesMax = 1 << 14;

  ForkCells() = default;
  ~ForkCells();
  ForkCells(const ForkCells&) = delete;
  ForkCells& operator=(const ForkCells&) = delete;

  // Returns a cell that contains 0 and is owned by this object. kUnavailable if the kernel does not
  // support such memory (Linux 4.14 and later do); kExhausted after a million cells.
  Result<Cell*> Take();

 private:
  Status AddPage();

  std::mutex mutex_;
  std::vector<std::byte*> pages_;  // under mutex_
  size_t used_ = 0;                // under mutex_: used bytes of the last page
};

// Detects that the process was forked after the object was created. Costs one load.
class ForkSentinel {
 public:
  // Aborts if the kernel does not support such memory, without which a fork cannot be detected.
  ForkSentinel();

  bool InChild() const {
    return generation_of_process_.load(std::memory_order_relaxed) != generation_;
  }

 private:
  const std::atomic<uint64_t>& generation_of_process_;  // 0 in a child until it draws its own
  const uint64_t generation_;  // unlike a pid, differs from every ancestor's and descendant's
};

// Descriptors that a child of fork() must not keep. The child closes its copies before fork()
// returns, while each number still refers to the same file as in the parent. (The kernel offers
// this only for exec.)
//
//  1. A fork() of any thread waits while a descriptor is opened and added, or removed and closed.
//     So a child never keeps a copy, and never closes a number that already refers to another
//     file.
//  2. In the child the set is empty. Pending operations of the parent's threads on the descriptors
//     do not happen there.
//
// Thread-safe. All sets of the process share one lock, which fork() takes, too: a fork handler has
// no argument, so it visits all sets.
//
// Sharp edge: children that are created without the C library's fork() (clone(2), vfork) keep their
// copies until they exec, which closes them, because every socket is opened with SOCK_CLOEXEC.
class CloseOnFork {
 public:
  CloseOnFork();
  ~CloseOnFork();
  CloseOnFork(const CloseOnFork&) = delete;
  CloseOnFork& operator=(const CloseOnFork&) = delete;

  // Runs `open`, adds the descriptor that it returns unless it is negative, and returns it.
  template <typename Opener>
  int Open(Opener open) {
    const std::lock_guard lock(Mutex());
    const int fd = open();
    if (fd >= 0) held_.push_back(fd);
    return fd;
  }

  // Removes `fd` and runs `close`, which closes it. No effect if the set lacks it, as in a child.
  template <typename Closer>
  void Close(int fd, Closer close) {
    const std::lock_guard lock(Mutex());
    if (std::erase(held_, fd) > 0) close();
  }

 private:
  static std::mutex& Mutex();
  static void InParent();
  static void InChild();

  std::vector<int> held_;  // this and the next member under Mutex()
  CloseOnFork* next_;
};

}  // namespace firn
