#pragma once

#include <functional>
#include <memory>
#include <string>

#include <sys/types.h>

#include "common/base/files.h"
#include "common/base/fork.h"
#include "common/base/status.h"

namespace firn {

// An open file or socket that children of fork() do not inherit. A lock (flock(2)) or name that
// belongs to the open file therefore ends with this process, even if a child still runs.
//
// Closes the file in the destructor, except in a child. One thread at a time. Sharp edge: as with
// CloseOnFork, children created without the C library's fork() keep their copies until they exec.
class UnsharedFile {
 public:
  UnsharedFile() = default;

  // Opens a file, closed on exec. `flags` as for open(2); `mode` of a file that is created.
  static Result<UnsharedFile> Open(const std::string& path, int flags, mode_t mode = 0644);

  // Holds the file that `open` returns, under the same condition as Of.
  static Result<UnsharedFile> From(const std::function<Result<FileHandle>()>& open);

  // Holds the descriptor that `make` returns, unless it is negative. `make` must be short, because
  // a fork() of any thread waits for it.
  template <typename Maker>
  static UnsharedFile Of(Maker make) {
    UnsharedFile file;
    file.held_ = std::make_unique<Held>();
    file.held_->fd = file.held_->set.Open(make);
    return file;
  }

  // Negative if nothing is open. Meaningless in a child.
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
