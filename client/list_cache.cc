#include "client/list_cache.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/list_text.h"

namespace firn {
namespace {

Status Failed(const std::string& what, const std::string& path) {
  const int error = errno;
  const std::string text = "cannot " + what + " " + path + ": " + std::strerror(error);
  if (error == ENOENT) return NotFound(text);
  return error == EACCES || error == EPERM || error == ELOOP ? Denied(text) : Unavailable(text);
}

// A descriptor that is closed at the end of the scope.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : fd_(open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)) {}
  ~OpenFile() {
    if (fd_ >= 0) close(fd_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int fd() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  const int fd_;
};

Status CheckOwner(int fd, const std::string& path) {
  struct stat seen {};
  if (fstat(fd, &seen) != 0) return Failed("look at", path);
  if (!S_ISREG(seen.st_mode)) return Denied(path + " is not a file");
  if (seen.st_uid != geteuid()) return Denied(path + " belongs to somebody else");
  if ((seen.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Denied("others may write " + path);
  return {};
}

Result<std::string> ReadAll(int fd, const std::string& path) {
  std::string bytes(kListTextBytesMax + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = read(fd, bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed("write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return fsync(fd) == 0 ? Status() : Failed("sync", path);
}

Status WriteNewFile(const std::string& path, std::string_view bytes) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (!file.ok()) return Failed("make", path);
  return WriteAll(file.fd(), bytes, path);
}

Status SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const OpenFile opened(folder, O_RDONLY | O_DIRECTORY);
  if (!opened.ok() || fsync(opened.fd()) != 0) return Failed("sync", folder);
  return {};
}

}  // namespace

Result<ServerList> ListCache::Read() const {
  const OpenFile file(path_, O_RDONLY);
  if (!file.ok()) return Failed("open", path_);
  FIRN_TRY(CheckOwner(file.fd(), path_));
  FIRN_ASSIGN(const std::string text, ReadAll(file.fd(), path_));
  Result<KeptList> kept = ParseList(text);
  if (!kept.ok()) return kept.status().WithContext(path_);
  if (kept->registry != registry_) return Conflict(path_ + " is of " + kept->registry);
  return std::move(kept->list);
}

Status ListCache::Write(const ServerList& list) const {
  // One name a process: two that share the file do not write into each other's.
  const std::string fresh = path_ + "." + std::to_string(getpid()) + ".new";
  unlink(fresh.c_str());  // of a process that died
  Status status = WriteNewFile(fresh, FormatList({registry_, list}));
  if (status.ok() && rename(fresh.c_str(), path_.c_str()) != 0) status = Failed("replace", path_);
  if (!status.ok()) {
    unlink(fresh.c_str());
    return status;
  }
  return SyncFolderOf(path_);
}

}  // namespace firn
