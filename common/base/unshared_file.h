#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "common/base/fork.h"
#include "common/base/status.h"

namespace firn {

// An open file, or a socket, that belongs to this process alone: a child of fork() has no copy of
// it. What a process shows by having something open (a flock(2), a name) ends with it then, however
// long its children live; a copy in a child would keep it up.
//
// Closed at the object's end; in a child that is nothing. One thread at a time. Sharp edge: as with
// CloseOnFork, children made past the C library keep their copies until they exec.
class UnsharedFile {
 public:
  UnsharedFile() = default;

  // Closed on exec; `flags` as for open(2), `mode` of a file that is made.
  static Result<UnsharedFile> Open(const std::string& path, int flags, mode_t mode = 0644);

  // What `make` returns, a descriptor or a negative number; it must be short, for a fork() of any
  // thread waits for it.
  template <typename Maker>
  static UnsharedFile Of(Maker make) {
    UnsharedFile file;
    file.held_ = std::make_unique<Held>();
    file.held_->fd = file.held_->set.Open(make);
    return file;
  }

  // Negative: nothing is open. In a child the number means nothing.
  int fd() const { return held_ == nullptr ? -1 : held_->fd; }

 private:
  struct Held {
    CloseOnFork set{};
    int fd = -1;
    ~Held();
  };
  std::unique_ptr<Held> held_;
};

}  // namespace firn
