#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "common/base/atomic.h"
#include "common/base/status.h"

namespace firn {

// What becomes of a process's things in its forked child. A child has the memory and no threads:
// whoever asks a ForkSentinel first, touches no lock that a thread of the parent may have held.

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

  bool InChild() const {
    return generation_of_process_.load(std::memory_order_relaxed) != generation_;
  }

 private:
  const std::atomic<uint64_t>& generation_of_process_;  // 0 in a child that has made no sentinel
  const uint64_t generation_;  // no ancestor's or descendant's, as a pid may be
};

// Descriptors that a child of fork() must not keep: it closes its copies of them before fork()
// returns there, while their numbers still mean what they meant in the parent. (The kernel has such
// a flag for exec only.)
//
//  1. A descriptor is opened and held, or let go and closed, as one step that no fork() of any
//     thread falls into. So a child never keeps a copy, and never closes a number that is another
//     file's by then.
//  2. In the child the set is empty. What the parent's threads were about to do with the
//     descriptors nobody does there.
//
// Thread-safe. All sets of the process share one lock, which fork() takes as well: a fork handler
// is given no object, so it goes through all of them.
//
// Sharp edge: children that are made past the C library (clone(2), vfork) keep their copies; those
// that go on to exec lose them there, for every socket is opened with SOCK_CLOEXEC.
class CloseOnFork {
 public:
  CloseOnFork();
  ~CloseOnFork();
  CloseOnFork(const CloseOnFork&) = delete;
  CloseOnFork& operator=(const CloseOnFork&) = delete;

  // Runs `open` and holds the descriptor that it returns, unless that is negative. Returns it.
  template <typename Opener>
  int Open(Opener open) {
    const std::lock_guard lock(Mutex());
    const int fd = open();
    if (fd >= 0) held_.push_back(fd);
    return fd;
  }

  // Lets go of `fd` and runs `close`, which closes it; nothing when it is not held, as in a child.
  template <typename Closer>
  void Close(int fd, Closer close) {
    const std::lock_guard lock(Mutex());
    if (std::erase(held_, fd) > 0) close();
  }

 private:
  static std::mutex& Mutex();
  static void InParent();
  static void InChild();

  std::vector<int> held_;  // this and the next under Mutex()
  CloseOnFork* next_;
};

}  // namespace firn
