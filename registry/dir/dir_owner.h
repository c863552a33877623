#pragma once

#include <string>

#include <sys/types.h>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// Whose a directory registry is, and who may read it: the folder's owner, group and mode, which
// every file and folder in it gets, whoever makes it. A node that root made and kept would be one
// that the server, as another user, can never write again.
struct DirOwner {
  FileOwner who;
  mode_t mode = 0;  // of the folder: the permission bits

  mode_t folder_mode() const { return mode; }
  mode_t file_mode() const { return mode & 0666; }
};

// What this process gives the files that it makes in the folder. kDenied, with the way out, where
// the folder's owner could not write them: who is neither the owner nor root must share a group
// that the mode lets write.
Result<DirOwner> OwnerIn(const std::string& folder);

// Makes the folders of a path that are not there. Made by root, each belongs to the owner of the
// one that it is made in.
Status MakeFolders(const std::string& path);

}  // namespace firn
