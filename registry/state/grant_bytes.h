#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "registry/state/locked_file.h"
#include "registry/state/state_folder.h"

namespace firn {

// A grant file that this process alone has: kGrantBytes at a path, in allocated blocks or pages and
// overwritten in place, so that neither a full disk nor a full memory gets in the way later. Not
// mapped: a file that somebody cuts short is an error then and no SIGBUS, and a fork inherits no
// page. One thread at a time.
class GrantBytes {
 public:
  // Makes it where it is missing. kConflict: another process has it.
  static Result<GrantBytes> Open(const std::string& path);

  // The same of one in memory, in a folder where it can only be ours: kInvalid when it belongs to
  // another user or has a second name.
  static Result<GrantBytes> OpenInMemory(const std::string& path);

  const FileIdentity& identity() const { return file_.identity(); }

  // These are StateFolder's.
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

// The folder for this user's grants below `grant_dir`, which is made where it is missing. Failures
// say why grants cannot be kept there: it is no memory that dies with the boot, or somebody else
// may write there.
Result<std::string> GrantFolder(const std::string& grant_dir);

}  // namespace firn
