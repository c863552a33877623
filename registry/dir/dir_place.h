#pragma once

#include <cstdint>
#include <string>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// The identity of a directory, recorded when it becomes a registry: inode, birth time and machine.
// A copy has another identity: one that replaces a deleted directory may get its inode number, but
// has a later birth time. An overlay, btrfs or ZFS has another device number after each mount, so
// the device is compared only if there is no birth time.

struct DirIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t born_ns = kBirthUntold;  // kBirthUntold: the other members decide
  std::string machine;              // content of the machine-id file; empty if there is none

  friend bool operator==(const DirIdentity&, const DirIdentity&) = default;
};

// kInvalid on a file system whose locks or renames are not reliable between processes or machines:
// NFS, SMB, FUSE, 9p, cluster file systems.
Status CheckFileSystem(const std::string& path);

// Returns the current identity of the directory.
Result<DirIdentity> Identify(const std::string& path, const std::string& machine_id_file);

std::string RenderIdentity(const DirIdentity& identity);
// kInvalid with a sentence: another format; kCorrupt: not an identity. Unknown members belong to a
// later version and are ignored.
Result<DirIdentity> ParseIdentity(const std::string& text);

// Ok if they are equal; otherwise kCorrupt with a sentence that says what differs.
Status CheckIdentity(const DirIdentity& recorded, const DirIdentity& now, const std::string& path);

}  // namespace firn
