#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/fork_cells.h"
#include "common/status.h"
#include "registry/claim/state_folder.h"

namespace firn {

// A state folder on a POSIX file system:
//
//   <folder>/<stem>.properties   the hint: replaced by temp, fsync, rename, fsync of the folder
//   <folder>/<stem>.grant        1024 bytes, preallocated, overwritten in place, under an exclusive
//                                flock(2) on that very inode from Open until the object's end
//
// Sharp edge: open it before anything that others can see, such as a listener: the lock is what
// keeps two processes from one grant.
class PosixStateFolder final : public StateFolder {
 public:
  // Makes the folder and the files where they are missing. kConflict: another process has the
  // folder. Otherwise what the operating system said, with the file's name.
  static Result<std::unique_ptr<PosixStateFolder>> Open(const std::string& folder,
                                                        const std::string& stem);
  // Gives the lock back. A forked child has closed its copy already, which leaves the parent's
  // lock.
  ~PosixStateFolder() override;

  FileIdentity grant_identity() const override { return identity_; }
  Result<std::string> ReadGrant() override;
  Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) override;
  Status RemoveGrant() override;
  Result<std::string> ReadHint() override;
  Status ReplaceHint(std::string_view text) override;

 private:
  PosixStateFolder(const std::string& folder, const std::string& stem);

  Status OpenGrant();
  Status CheckSize(off_t size);
  Status Preallocate();
  Status CheckOwner() const;

  const std::string folder_;
  const std::string grant_path_;
  const std::string hint_path_;
  ForkSentinel sentinel_;
  int grant_ = -1;
  bool wrong_size_ = false;
  FileIdentity identity_;
};

// This boot's name, as the kernel tells it; kUnavailable where it does not.
Result<std::string> BootId();

}  // namespace firn
