#include "common/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace firn {
namespace {

Status WriteDraft(const Draft& draft, std::string_view bytes) {
  unlink(draft.path.c_str());
  constexpr int kFresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(draft.path, kFresh, draft.mode));
  FIRN_TRY(WriteAll(file.fd(), bytes, draft.path));
  return fsync(file.fd()) == 0 ? Status() : FileFailure("sync", draft.path, errno);
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Status FileFailure(const std::string& what, const std::string& path, int error) {
  const std::string text = "cannot " + what + " " + path + ": " + strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFound(text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ELOOP:
      return Denied(text);
    default:
      return Unavailable(text);
  }
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) close(fd_);
}

FileHandle::FileHandle(FileHandle&& other) noexcept : fd_(other.Release()) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

int FileHandle::Release() { return std::exchange(fd_, -1); }

Result<FileHandle> FileHandle::Open(const std::string& path, int flags, mode_t mode) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return FileFailure("open", path, errno);
  return FileHandle(fd);
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileFailure("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status SyncFolder(const std::string& path) {
  FIRN_ASSIGN(const FileHandle folder, FileHandle::Open(path, O_RDONLY | O_DIRECTORY));
  return fsync(folder.fd()) == 0 ? Status() : FileFailure("sync", path, errno);
}

Status ReplaceFile(const std::string& path, const Draft& draft, std::string_view bytes,
                   Replaced* replaced) {
  Replaced unread;
  Replaced& stage = replaced == nullptr ? unread : *replaced;
  stage = Replaced::kNo;
  if (Status written = WriteDraft(draft, bytes); !written.ok()) {
    unlink(draft.path.c_str());
    return written;
  }
  stage = Replaced::kPerhaps;
  if (rename(draft.path.c_str(), path.c_str()) != 0) {
    const Status failed = FileFailure("rename", draft.path, errno);
    unlink(draft.path.c_str());
    return failed;
  }
  return SyncFolder(FolderOf(path));
}

}  // namespace firn
