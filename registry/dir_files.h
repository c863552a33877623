#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace firn {

// The few things that the directory registry does with files. Every failure carries the path and
// the kernel's word for it; kNotFound when there is no such file.

class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  // Closed on exec; `flags` as for open(2).
  static Result<FileHandle> Open(const std::string& path, int flags);

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// At most `limit` bytes; a longer file is kCorrupt.
Result<std::string> ReadFile(const std::string& path, size_t limit);

// How far a replacement has got when it fails decides what its asker may believe.
enum class Replaced { kNo, kPerhaps };

// Writes `bytes` beside `folder`/`name`, syncs, renames over it, syncs the folder. A crash at any
// moment leaves the old file or the new one, whole. When it fails, `*replaced` says whether the
// new one may be there.
Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   Replaced* replaced);

// Makes a folder whose parent exists, and makes it last. Ok when it is there.
Status MakeFolder(const std::string& path);

// Removes a file, or an empty folder, and makes that last. Ok when it is not there.
Status RemoveFile(const std::string& folder, const std::string& name);
Status RemoveFolder(const std::string& parent, const std::string& name);

// Names of what lies in a folder, unsorted, without "." and "..".
Result<std::vector<std::string>> ListFolder(const std::string& path);

Status SyncFolder(const std::string& path);

// `path` and what went wrong, as a Status whose code is what the caller can do about it.
Status FileFailure(const std::string& what, const std::string& path, int error);

}  // namespace firn
