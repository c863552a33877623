#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/status.h"
#include "registry/dir/dir_owner.h"

namespace firn {

// The few things that the directory registry does with files, beside those of common/base/files.h.

// At most `limit` bytes. kCorrupt: the file is longer, or is there and does not read.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// Makes `bytes` the file `name` in `folder`, as common/base/files.h does, by a draft that no
// listing of nodes takes for one. It is `owner`'s.
Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   const DirOwner& owner, Replaced* replaced);

// Makes a folder whose parent exists, `owner`'s from the moment it is seen, and makes it last. Ok
// when it is there.
Status MakeFolder(const std::string& path, const DirOwner& owner);

// Removes a file, or an empty folder, and makes that last. Ok when it is not there.
Status RemoveFile(const std::string& folder, const std::string& name);
Status RemoveFolder(const std::string& parent, const std::string& name);

// Names of what lies in a folder, unsorted, without "." and "..".
Result<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace firn
