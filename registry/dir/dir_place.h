#pragma once

#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// Whether a directory is the one that it was when it became a registry: the same inode and time of
// birth, the same machine. A copy is not, wherever it was made to: one that takes a deleted
// directory's place may get its inode number, but was born later. An overlay, btrfs or ZFS has
// another device number after each mount, so that counts only where no time of birth is told.

struct DirIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born_ns = kBirthUntold;  // where the file system does not tell, the others decide
  std::string machine;              // content of the machine-id file; empty where there is none

  friend bool operator==(const DirIdentity&, const DirIdentity&) = default;
};

// kInvalid on a file system whose locks or renames cannot be trusted between processes or machines:
// NFS, SMB, FUSE, 9p, cluster file systems.
Status CheckFileSystem(const std::string& path);

// As the directory is now.
Result<DirIdentity> Identify(const std::string& path, const std::string& machine_id_file);

std::string RenderIdentity(const DirIdentity& identity);
// kInvalid with a sentence: of another format; kCorrupt: not an identity. Members that it does not
// know are a later version's.
Result<DirIdentity> ParseIdentity(const std::string& text);

// Ok when they are the same; otherwise kCorrupt with a sentence that says what differs.
Status CheckIdentity(const DirIdentity& recorded, const DirIdentity& now, const std::string& path);

}  // namespace firn
