#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/files.h"
#include "common/status.h"

namespace firn {

// The few things that the directory registry does with files, beside those of common/files.h.

// At most `limit` bytes; a longer file is kCorrupt.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// Makes `bytes` the file `name` in `folder`, as common/files.h does, by a draft that no listing of
// nodes takes for one.
Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   Replaced* replaced);

// Makes a folder whose parent exists, and makes it last. Ok when it is there.
Status MakeFolder(const std::string& path);

// Removes a file, or an empty folder, and makes that last. Ok when it is not there.
Status RemoveFile(const std::string& folder, const std::string& name);
Status RemoveFolder(const std::string& parent, const std::string& name);

// Names of what lies in a folder, unsorted, without "." and "..".
Result<std::vector<std::string>> ListFolder(const std::string& path);

}  // namespace firn
