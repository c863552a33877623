#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "registry/state/locked_file.h"
#include "registry/state/state_folder.h"

namespace firn {

// A grant file that only this process uses: kGrantBytes at a path, in allocated blocks or pages and
// overwritten in place, so that a full disk or memory cannot fail a later write. Not mapped: so a
// truncated file is an error and not a SIGBUS, and a forked child inherits no page. One thread at a
// time.
class GrantBytes {
 public:
  // Creates the file if it is missing. kConflict: another process uses it.
  static Result<GrantBytes> Open(const std::string& path);

  // Open for a file in memory, in a private folder: kInvalid if it belongs to another user or has a
  // second hard link.
  static Result<GrantBytes> OpenInMemory(const std::string& path);

  const FileIdentity& identity() const { return file_.identity(); }

  // As StateFolder's methods.
  Result<std::string> Read() const;
  Status Write(size_t offset, std::string_view bytes, StateFolder::Durability durability);
  Status Remove();

 private:
  GrantBytes(LockedFile file, bool in_memory) : file_(std::move(file)), in_memory_(in_memory) {}

  Status CheckSize();
  Status Allocate();

  LockedFile file_;
  bool in_memory_;
  bool wrong_size_ = false;
};

// Returns the folder for this user's grants below `grant_dir`; creates it if it is missing. Fails
// if grants cannot be kept there: the file system is not cleared at a reboot, or another user may
// write there.
Result<std::string> GrantFolder(const std::string& grant_dir);

}  // namespace firn
