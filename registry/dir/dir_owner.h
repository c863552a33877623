#pragma once

#include <string>

#include <sys/types.h>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn {

// The owner, group and mode of a directory registry's folder. Every file and folder in it gets the
// same, whichever user creates it. A node that belonged to root could never be written by a server
// that runs as another user.
struct DirOwner {
  FileOwner who;
  mode_t mode = 0;  // of the folder: the permission bits

  mode_t folder_mode() const { return mode; }
  mode_t file_mode() const { return mode & 0666; }
};

// Returns the owner for files that this process creates in the folder. kDenied, with the remedy, if
// the folder's owner could not write them: a user other than the owner and root must share a group
// with write permission.
Result<DirOwner> OwnerIn(const std::string& folder);

// Creates the missing folders of a path. If root creates one, it belongs to the owner of its
// parent.
Status MakeFolders(const std::string& path);

}  // namespace firn
