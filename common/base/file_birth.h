#pragma once

#include <cstdint>

namespace firn {

// When a file or folder was made, in ns since 1970: what no program can choose, so it tells a copy
// from the original where a deleted file's inode number was given out again.
inline constexpr uint64_t kBirthUntold = UINT64_MAX;  // by this file system

// Of an open file.
uint64_t BirthOf(int fd);

}  // namespace firn
