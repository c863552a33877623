#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// Which file this is. A copy has another inode number, or, where a deleted file's number was given
// out again, another time of birth: no program can choose that one.
struct FileIdentity {
  static constexpr uint64_t kUntold = kBirthUntold;

  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born_ns = 0;  // kUntold: the file system does not say

  // The same file of a file system that may have been mounted anew: overlays, btrfs and ZFS get
  // another device number each time. Never of a file whose birth is not told.
  bool SameWhereverMounted(const FileIdentity& other) const {
    return inode == other.inode && born_ns == other.born_ns && born_ns != kUntold;
  }
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Which grant file, of which state folder, in which life of the machine.
struct GrantIdentity {
  std::string boot_id;
  FileIdentity file;
  FileIdentity lock;  // the lock file in the state folder

  friend bool operator==(const GrantIdentity&, const GrantIdentity&) = default;
};

// What a server keeps for its next start, as bytes: the hint (which slot to try first) and the
// grant (the permission to go on inside an old claim). What the bytes mean is GrantFile's and
// Hint's business, so that a simulated disk runs the same code.
//
// The grant file is open, locked and of its full size for as long as the object lives; nobody else
// can have it meanwhile. Owned by the control thread. Every failure carries the file's name.
//
// In a child of fork() every verb is refused with kDenied: the files are the parent's.
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

  // Ok, or why there is no grant file: then no verb of the grant may be called, and a server that
  // is killed claims anew.
  virtual Status has_grant() const { return {}; }

  virtual GrantIdentity grant_identity() const = 0;

  // All kGrantBytes of the open grant file; a new one is all blanks. kCorrupt: it was found with
  // another size, so it is not new, and nobody has written it since.
  virtual Result<std::string> ReadGrant() = 0;

  // Overwrites in place. A failure may have written part of it.
  virtual Status WriteGrant(size_t offset, std::string_view bytes, Durability durability) = 0;

  // Takes the grant file's name away, so that no later start finds it. The lock stays held.
  virtual Status RemoveGrant() = 0;

  // kNotFound: there is none.
  virtual Result<std::string> ReadHint() = 0;

  // Begins to make `text` the hint; a crash leaves the old or the new one, whole. Never waits for
  // the disk: whoever issues must not stand still because that does.
  virtual void KeepHint(std::string text) = 0;

  // Why a hint could not be kept, once; ok while none has failed.
  virtual Status TakeHintFailure() = 0;
};

}  // namespace firn
