#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// The identity of a file. A copy has another inode number or, if a deleted file's number was
// reused, another birth time, which no program can choose.
struct FileIdentity {
  static constexpr uint64_t kUntold = kBirthUntold;

  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born_ns = 0;  // birth time; kUntold: the file system has none

  // Whether it is the same file, also after another mount: overlays, btrfs and ZFS get another
  // device number each time. False for a file without a birth time.
  bool SameAcrossMounts(const FileIdentity& other) const {
    return inode == other.inode && born_ns == other.born_ns && born_ns != kUntold;
  }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// The identity of a grant file, of its state folder, and of the boot.
struct GrantIdentity {
  std::string boot_id;  // BootId()
  FileIdentity file;
  FileIdentity lock;  // the lock file in the state folder

  friend bool operator==(const GrantIdentity&, const GrantIdentity&) = default;
};

// The files that a server keeps for its next start, as bytes: the hint (which slot to try first)
// and the grant (the permission to resume an old claim). GrantFile and Hint interpret the bytes, so
// that the same code runs on a simulated disk.
//
// As long as the object lives, the grant file is open, locked and of its full size; no other
// process can use it. Owned by the control thread. Every failure contains the file's name.
//
// In a child of fork() every method fails with kDenied: the files are the parent's.
class StateFolder {
 public:
  static constexpr size_t kGrantBytes = 2048;
  static constexpr size_t kHintBytesMax = 8192;

  // kPageCache: survives the process, not the machine. kDisk: survives both.
  enum class Durability { kPageCache, kDisk };

  StateFolder() = default;
  StateFolder(const StateFolder&) = delete;
  StateFolder& operator=(const StateFolder&) = delete;
  virtual ~StateFolder() = default;

  // Ok, or why there is no grant file: then no method of the grant may be called, and after a crash
  // the server cannot resume its claim.
  virtual Status has_grant() const { return {}; }

  virtual GrantIdentity grant_identity() const = 0;

  // Returns, once, whether this machine is a copy of the one on which the folder was opened, or was
  // reset to a snapshot of it. The original may continue, so this process must not use anything
  // that it held before. The identity is the copy's from then on.
  virtual bool TakeCopied() { return false; }

  // Returns all kGrantBytes of the open grant file; a new file contains only blanks. kCorrupt: it
  // had another size when it was opened, so it is not new, and has not been written since.
  virtual Result<std::string> ReadGrant() = 0;

  // Overwrites in place. A failure may have written part of it.
  virtual Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) = 0;

  // Unlinks the grant file, so that no later start finds it. The lock stays held.
  virtual Status RemoveGrant() = 0;

  // kNotFound: there is none.
  virtual Result<std::string> ReadHint() = 0;

  // Starts writing `text` as the hint; after a crash the old or the new hint is complete. Never
  // waits for the disk: issuing must not depend on it.
  virtual void KeepHint(std::string text) = 0;

  // Returns, once, why a hint could not be written; ok if none has failed.
  virtual Status TakeHintFailure() = 0;
};

}  // namespace firn
