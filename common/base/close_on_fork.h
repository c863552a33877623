#pragma once

#include <mutex>
#include <vector>

namespace firn {

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
