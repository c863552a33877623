#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/status.h"

namespace firn {

// What several parts of Firn do with files. Every failure carries the path and the kernel's word
// for it: kNotFound when there is no such file, kDenied, or kUnavailable.

// `path` and what went wrong, as a Status whose code is what the caller can do about it.
Status FileFailure(const std::string& what, const std::string& path, int error);

// An open file, closed at the object's end. One thread at a time.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  // Closed on exec; `flags` as for open(2), `mode` of a file that is made.
  static Result<FileHandle> Open(const std::string& path, int flags, mode_t mode = 0644);

  int fd() const { return fd_; }
  // The descriptor, which the caller closes from now on.
  int Release();

 private:
  int fd_ = -1;
};

// All of `bytes`, from where the file stands.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);

// Makes what was made, renamed or removed in a folder last.
Status SyncFolder(const std::string& path);

// How far a replacement has got when it fails decides what its asker may believe.
enum class Replaced { kNo, kPerhaps };

// The new file before it takes the old one's place. Two programs that replace one file without a
// lock need drafts of different names.
struct Draft {
  std::string path;  // in the same folder
  mode_t mode = 0600;
};

// Makes `bytes` the file at `path`: written to the draft, synced, renamed over it, the folder
// synced. A crash at any moment leaves the old file or the new one, whole; what an earlier crash
// left of the draft is removed. When it fails, `*replaced` says whether the new one may be there.
Status ReplaceFile(const std::string& path, const Draft& draft, std::string_view bytes,
                   Replaced* replaced = nullptr);

}  // namespace firn
