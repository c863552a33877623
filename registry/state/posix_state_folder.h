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

namespace firn {

// Where a server keeps what its next start wants to know.
struct StatePlace {
  // Where grants are kept unless told otherwise: memory on every Linux.
  static constexpr char kGrantDir[] = "/dev/shm";

  std::string folder;                 // on disk
  std::string stem;                   // OwnerName::file_stem()
  std::string grant_dir = kGrantDir;  // in memory, below which the grant's folder is
  bool grant_on_disk = false;         // of machine ids given by hand: it outlives the boot
  std::string only_on_host{};         // a name that one process of this host may have; empty: none
};

// A state folder on a POSIX file system, and the memory beside it:
//
//   <folder>/<stem>.lock         empty; says by its flock(2) that the folder is in use, and by its
//                                identity which folder it is
//   <folder>/<stem>.properties   the hint: replaced by temp, fsync, rename, fsync of the folder
//   <grant_dir>/firn-<uid>/<d>   the grant; <d> is a digest of the stem and the lock file's
//   identity <folder>/<stem>.grant        the grant instead, of a machine id given by hand
//
// A grant outlives its process and must not outlive the boot: writes that a disk has lost would
// bring an older permission back. So what is no tmpfs is not used, and there is no grant then.
//
// Sharp edge: open it before anything that others can see, such as a listener: the locks are what
// keeps two processes from one grant.
class PosixStateFolder final : public StateFolder {
 public:
  // Makes the folder and the files where they are missing. kConflict: another process has the
  // folder or its grant. kInvalid: something else stands where a file should be. Otherwise what the
  // operating system said, with the file's name. `replace` makes a text the hint.
  static Result<std::unique_ptr<PosixStateFolder>> Open(const StatePlace& place,
                                                        FileWriter::Replacer replace = {});

  Status has_grant() const override { return no_grant_; }
  GrantIdentity grant_identity() const override;
  const FileIdentity& lock_identity() const { return lock_.identity(); }
  // Of the file in use; empty when there is none.
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
