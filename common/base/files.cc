#include "common/base/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

Status WriteDraft(const Draft& draft, std::string_view bytes) {
  unlink(draft.path.c_str());
  constexpr int kFresh = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(draft.path, kFresh, draft.mode));
  if (draft.owner) FIRN_TRY(GiveFile(file.fd(), *draft.owner, draft.mode, draft.path));
  FIRN_TRY(WriteAll(file.fd(), bytes, draft.path));
  return fsync(file.fd()) == 0 ? Status() : FileFailure("sync", draft.path, errno);
}

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
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

Status CheckRegular(int fd, const std::string& path) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return FileFailure("look at", path, errno);
  if (S_ISREG(info.st_mode)) return {};
  return Invalid(path + " is " + KindOf(info.st_mode) + ", not a file");
}

Result<FileHandle> OpenRegular(const std::string& path, int flags, mode_t mode) {
  auto file = FileHandle::Open(path, flags | O_NONBLOCK | O_NOCTTY, mode);
  if (!file.ok()) {
    // Names the kind of a file that open() refuses.
    struct stat info {};
    if (lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return file;
    if (S_ISLNK(info.st_mode)) return file;
    return Invalid(path + " is " + KindOf(info.st_mode) + ", not a file");
  }
  FIRN_TRY(CheckRegular(file->fd(), path));
  return file;
}

Result<std::string> ReadAll(int fd, size_t bytes_max, const std::string& path) {
  std::string bytes;
  char buffer[16 << 10];
  while (bytes.size() <= bytes_max) {
    const ssize_t got = pread(fd, buffer, sizeof buffer, static_cast<off_t>(bytes.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileFailure("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
  }
  return Corrupt(path + " is too long");
}

Result<std::string> ReadRegularFile(const std::string& path, size_t bytes_max, int flags) {
  FIRN_ASSIGN(const FileHandle file, OpenRegular(path, O_RDONLY | flags));
  return ReadAll(file.fd(), bytes_max, path);
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

uint64_t BirthOf(int fd) {
  struct statx seen {};
  const bool told = statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &seen) == 0 &&
                    (seen.stx_mask & STATX_BTIME) != 0 && seen.stx_btime.tv_sec > 0;
  if (!told) return kBirthUntold;
  return static_cast<uint64_t>(seen.stx_btime.tv_sec) * 1'000'000'000 + seen.stx_btime.tv_nsec;
}

Status SyncFolder(const std::string& path) {
  FIRN_ASSIGN(const FileHandle folder, FileHandle::Open(path, O_RDONLY | O_DIRECTORY));
  return fsync(folder.fd()) == 0 ? Status() : FileFailure("sync", path, errno);
}

Status GiveFile(int fd, const FileOwner& owner, mode_t mode, const std::string& path) {
  struct stat now {};
  if (fstat(fd, &now) != 0) return FileFailure("look at", path, errno);
  const uid_t user = now.st_uid == owner.user ? static_cast<uid_t>(-1) : owner.user;
  const gid_t group = now.st_gid == owner.group ? static_cast<gid_t>(-1) : owner.group;
  const bool same = now.st_uid == owner.user && now.st_gid == owner.group;
  if (!same && fchown(fd, user, group) != 0) return FileFailure("give away", path, errno);
  return fchmod(fd, mode) == 0 ? Status() : FileFailure("set the mode of", path, errno);
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
