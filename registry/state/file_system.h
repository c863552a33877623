#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Returns the name of a foreign file system, which another machine, or a program on this one,
// serves: NFS, SMB, FUSE, 9p, cluster file systems. Locks and renames there are not reliable
// between machines, and a write may block indefinitely.
//
// Empty for a local file system. `magic` is the type that statfs(2) returns.
std::string_view ForeignFileSystem(uint32_t magic);

// ForeignFileSystem for the file system of `path`.
Result<std::string_view> ForeignFileSystemAt(const std::string& path);

// Whether a file system of this type is in memory, so that a boot empties it: tmpfs, ramfs.
bool IsInMemory(uint32_t magic);
Result<bool> IsInMemoryAt(const std::string& path);

}  // namespace firn
