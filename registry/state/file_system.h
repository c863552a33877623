#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// What lies on another machine, or behind a program of this one: NFS, SMB, FUSE, 9p, cluster file
// systems. Locks and renames there cannot be trusted between machines, and a write may stand still
// for as long as somebody else likes.
//
// Its name; empty for a file system of this host's own. By the number that statfs(2) tells.
std::string_view ForeignFileSystem(uint32_t magic);

// The same of what `path` lies on.
Result<std::string_view> ForeignFileSystemAt(const std::string& path);

}  // namespace firn
