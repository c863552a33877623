#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "common/base/status.h"

namespace firn {

// Functions for files. Every failure contains the path and the kernel's message: kNotFound if the
// file does not exist, kDenied, or kUnavailable.

// Returns errno's failure with `path` as a Status. The code names the remedy.
Status FileFailure(const std::string& what, const std::string& path, int error);

// An open file, closed at the object's end. One thread at a time.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  // Opens a file, closed on exec. `flags` as for open(2); `mode` of a file that is created.
  static Result<FileHandle> Open(const std::string& path, int flags, mode_t mode = 0644);

  int fd() const { return fd_; }
  // Returns the descriptor; the caller must close it.
  int Release();

 private:
  int fd_ = -1;
};

// Returns ok for a regular file, otherwise kInvalid with the path and the kind of file. Opening a
// FIFO can block without end, and reading a device can have any effect.
Status CheckRegular(int fd, const std::string& path);

// As FileHandle::Open, for regular files only. Never blocks on a FIFO.
Result<FileHandle> OpenRegular(const std::string& path, int flags, mode_t mode = 0600);

// Returns the content of a regular file. kCorrupt if it has more than `bytes_max` bytes. `flags`
// are added to O_RDONLY: O_NOFOLLOW for files that must not have been replaced by a link.
Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_max, int flags = 0);
// Like ReadRegularFile for an open file, from its beginning.
Result<std::string> ReadAll(int fd, size_t bytes_max, const std::string& path);

// Writes all of `bytes` at the file's position.
Status WriteAll(int fd, std::string_view bytes, const std::string& path);

// Returns the creation time of an open file or folder, in ns since 1970. No program can set it, so
// it distinguishes a copy from the original even if the copy got the original's inode number.
inline constexpr uint64_t kBirthUntold = UINT64_MAX;  // the file system does not record it
uint64_t BirthOf(int fd);

// Makes earlier creations, renames and removals in a folder durable.
Status SyncFolder(const std::string& path);

// Whether the new file may exist after a failed replacement.
enum class Replaced { kNo, kPerhaps };

// The owner of a file.
struct FileOwner {
  uid_t user = 0;
  gid_t group = 0;
};

// Sets an open file's owner, and its mode regardless of the umask. Only root can change the user;
// other users can set a group that they belong to.
Status GiveFile(int fd, const FileOwner& owner, mode_t mode, const std::string& path);

// The new file before it replaces the old one. Two programs that replace the same file without a
// lock must use different names.
struct Draft {
  std::string path;  // in the same folder
  mode_t mode = 0600;
  std::optional<FileOwner> owner{};  // as GiveFile; default: the process's user and group
};

// Replaces the file at `path` by `bytes`: writes the draft, syncs it, renames it and syncs the
// folder. A crash leaves either the old or the new file, complete. Removes a draft that an earlier
// crash left. After a failure, `*replaced` says whether the new file may exist.
Status ReplaceFile(const std::string& path, const Draft& draft, std::string_view bytes,
                   Replaced* replaced = nullptr);

}  // namespace firn
