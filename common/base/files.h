#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/base/status.h"

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

// Ok for a regular file; kInvalid, with the path and what it is, for anything else: a FIFO would
// keep its reader waiting for ever, and a device does who knows what.
Status CheckRegular(int fd, const std::string& path);

// FileHandle::Open of a regular file only. Never waits for whoever holds a FIFO's other end.
Result<FileHandle> OpenRegular(const std::string& path, int flags, mode_t mode = 0600);

// All of a regular file, at most `bytes_max` bytes; one more is kCorrupt. `flags` beside reading:
// O_NOFOLLOW for files that nobody may have put a link in the place of.
Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_max, int flags = 0);
// The same of an open one, from its beginning.
Result<std::string> ReadAll(int fd, size_t bytes_max, const std::string& path);

// All of `bytes`, from where the file stands.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);

// When an open file or folder was made, in ns since 1970: what no program can choose, so it tells a
// copy from the original where a deleted file's inode number was given out again.
inline constexpr uint64_t kBirthUntold = UINT64_MAX;  // by this file system
uint64_t BirthOf(int fd);

// Makes what was made, renamed or removed in a folder last.
Status SyncFolder(const std::string& path);

// How far a replacement has got when it fails decides what its asker may believe.
enum class Replaced { kNo, kPerhaps };

// Whose a file is.
struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};

// Makes an open file `owner`'s, with just this mode whatever the umask is. Only root gives files to
// other users; anybody to a group that he belongs to.
Status GiveFile(int fd, const FileOwner& owner, mode_t mode, const std::string& path);

// The new file before it takes the old one's place. Two programs that replace one file without a
// lock need drafts of different names.
struct Draft {
  std::string path;  // in the same folder
  mode_t mode = 0600;
  std::optional<FileOwner> owner{};  // as GiveFile; otherwise whoever runs this
};

// Makes `bytes` the file at `path`: written to the draft, synced, renamed over it, the folder
// synced. A crash at any moment leaves the old file or the new one, whole; what an earlier crash
// left of the draft is removed. When it fails, `*replaced` says whether the new one may be there.
Status ReplaceFile(const std::string& path, const Draft& draft, std::string_view bytes,
                   Replaced* replaced = nullptr);

}  // namespace firn
