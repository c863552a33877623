#pragma once

#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/unshared_file.h"
#include "registry/state/state_folder.h"

namespace firn {

// A file that no other process has meanwhile: open and under an exclusive flock(2), on the very
// inode that its name leads to. The lock ends with the object or its process, whatever forked
// children do: they have no copy. One thread at a time.
class LockedFile {
 public:
  LockedFile() = default;

  // Makes it where it is missing, mode 0600. kConflict: another process has it. kInvalid: what
  // stands there is no regular file. Never waits for anybody.
  static Result<LockedFile> Open(const std::string& path);

  int fd() const { return file_.fd(); }
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

 private:
  LockedFile(std::string path, UnsharedFile file, FileIdentity identity)
      : path_(std::move(path)), file_(std::move(file)), identity_(identity) {}

  std::string path_;
  UnsharedFile file_;
  FileIdentity identity_;
};

}  // namespace firn
