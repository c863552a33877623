#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/files.h"
#include "common/base/status.h"
#include "registry/dir/dir_owner.h"

namespace firn {

// File operations of the directory registry, in addition to common/base/files.h.

// Reads at most `limit` bytes. kCorrupt: the file is longer, or exists and cannot be read.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// Replaces the file `name` in `folder` by `bytes`, as common/base/files.h does, by a draft that a
// listing of nodes ignores. The file belongs to `owner`.
Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   const DirOwner& owner, Replaced* replaced);

// Creates a folder in an existing parent and syncs it. It belongs to `owner` from the moment that
// it is visible. Ok if it exists already.
Status MakeFolder(const std::string& path, const DirOwner& owner);

// Removes a file, or an empty folder, and syncs that. Ok if it does not exist.
Status RemoveFile(const std::string& folder, const std::string& name);
Status RemoveFolder(const std::string& parent, const std::string& name);

// Lists the names in a folder, unsorted, without "." and "..".
Result<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace firn
