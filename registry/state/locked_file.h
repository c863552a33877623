#pragma once

#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/unshared_file.h"
#include "registry/state/state_folder.h"

namespace firn {

// A file that no other process can use at the same time: open and under an exclusive flock(2), on
// the inode that its name refers to. The lock ends with the object or its process. Forked children
// have no copy of it. One thread at a time.
class LockedFile {
 public:
  LockedFile() = default;

  // Creates the file if it is missing, with mode 0600. kConflict: another process has locked it.
  // kInvalid: the path is not a regular file. Never blocks.
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
