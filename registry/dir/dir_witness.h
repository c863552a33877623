#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// Tells whether some process of this host still works on a directory that used to be at a path.
//
// A directory registry that is empty is either new, or the old one was deleted under processes that
// go on issuing inside claims which the new one knows nothing of. An open socket with a name in the
// kernel's abstract name space outlives every file, and goes with its process: each user of a
// directory registry holds one, which carries path and inode.
//
// Seen are processes of this network name space only: containers that share a directory and no
// network have to be stopped by whoever deletes it.
class DirWitness {
 public:
  // Stands for this process, as long as the object lives, for the directory now at `path`.
  // kUnavailable when the kernel gives no socket.
  static Result<DirWitness> Stand(const std::string& path, uint64_t inode);

  // A process that stands for another directory that was at `path` before.
  static std::optional<pid_t> StaleUser(const std::string& path, uint64_t inode);

 private:
  explicit DirWitness(UnsharedFile socket) : socket_(std::move(socket)) {}

  UnsharedFile socket_;
};

}  // namespace firn
