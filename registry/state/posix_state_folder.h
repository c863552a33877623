#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/file_writer.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "registry/state/grant_bytes.h"
#include "registry/state/locked_file.h"
#include "registry/state/state_folder.h"
#include "registry/state/this_boot.h"

namespace firn {

// The places of the files that a server keeps for its next start.
struct StatePlace {
  // The default place for grants: in memory on every Linux.
  static constexpr char kGrantDir[] = "/dev/shm";

  std::string folder;                 // on disk
  std::string stem;                   // OwnerName::file_stem()
  std::string grant_dir = kGrantDir;  // in memory; the parent of the grant's folder
  bool grant_on_disk = false;         // for static machine ids: the grant outlives the boot
  std::string only_on_host{};         // a name for one process of this host; empty: none
  std::string vm_clock{kVmClock};     // see BootId
};

// A state folder on a POSIX file system, and the memory beside it:
//
//   <folder>/<stem>.lock         empty; its flock(2) shows that the folder is in use, and its
//                                identity identifies the folder
//   <folder>/<stem>.properties   the hint: replaced by temp, fsync, rename, fsync of the folder
//   <grant_dir>/firn-<uid>/<d>   the grant; <d> is a digest of stem and lock file identity
//   <folder>/<stem>.grant        the grant of a static machine id instead
//
// A grant outlives its process and must not outlive the boot: a disk that loses writes would
// restore an older permission. So without a tmpfs there is no grant.
//
// Sharp edge: open it before anything that is visible outside, such as a listener: its locks keep
// two processes from using one grant.
class PosixStateFolder final : public StateFolder {
 public:
  // Creates the folder and the files if they are missing. kConflict: another process uses the
  // folder or its grant. kInvalid: a path is not a regular file. Otherwise the operating system's
  // error, with the file's name. `replace` writes the hint.
  static Result<std::unique_ptr<PosixStateFolder>> Open(const StatePlace& place,
                                                        FileWriter::Replacer replace = {});

  Status has_grant() const override { return no_grant_; }
  GrantIdentity grant_identity() const override;
  bool TakeCopied() override;
  const FileIdentity& lock_identity() const { return lock_.identity(); }
  // The grant file in use; empty if there is none.
  const std::string& grant_path() const { return grant_path_; }

  Result<std::string> ReadGrant() override;
  Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) override;
  Status RemoveGrant() override;
  Result<std::string> ReadHint() override;
  void KeepHint(std::string text) override;
  Status TakeHintFailure() override { return hints_.TakeFailure(); }

 private:
  PosixStateFolder(const StatePlace& place, FileWriter::Replacer replace);

  Status OpenGrant(const StatePlace& place);
  Status CheckOwner() const;

  const std::string hint_path_;
  const std::string vm_clock_;
  std::string grant_path_;
  std::string boot_id_;
  ForkSentinel sentinel_;
  LockedFile lock_;
  UnsharedFile only_on_host_;
  std::optional<GrantBytes> grant_;
  Status no_grant_;
  FileWriter hints_;
};

}  // namespace firn
