#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// Detects whether a process of this host still uses a directory that was at a path before.
//
// An empty directory is either a new registry, or the old one was deleted while processes still
// issue under claims that the new one does not contain. An open socket with a name in the kernel's
// abstract namespace outlives every file and ends with its process: each user of a directory
// registry has some, whose names contain the inode and a hash of the path, in every form under
// which a later start can reach the same place.
//
// Only processes of the same network namespace are detected. Before you delete the directory, stop
// containers that share it but have another network.
class DirWitness {
 public:
  // Marks the directory now at `path` as used by this process, as long as the object lives.
  // kUnavailable if there is no socket.
  static Result<DirWitness> Stand(const std::string& path, uint64_t inode);

  // Returns a process that uses another directory that was at `path` before. Without `inode`, also
  // one that uses this directory.
  static Result<std::optional<pid_t>> StaleUser(const std::string& path,
                                                std::optional<uint64_t> inode);

 private:
  explicit DirWitness(std::vector<UnsharedFile> sockets) : sockets_(std::move(sockets)) {}

  std::vector<UnsharedFile> sockets_;
};

}  // namespace firn
