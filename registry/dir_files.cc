#include "registry/dir_files.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileFailure("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Status FileFailure(const std::string& what, const std::string& path, int error) {
  const std::string text = what + " " + path + ": " + strerror(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return NotFound(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return Denied(text);
    default:
      return Unavailable(text);
  }
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) close(fd_);
}

FileHandle::FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<FileHandle> FileHandle::Open(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0644);
  if (fd < 0) return FileFailure("open", path, errno);
  return FileHandle(fd);
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(path, O_RDONLY | O_NONBLOCK));
  std::string bytes;
  char buffer[16 << 10];
  while (true) {
    const ssize_t got = read(file.fd(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileFailure("read", path, errno);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(got));
    if (bytes.size() > limit) return Corrupt(path + " is larger than it can be");
  }
}

Status ReplaceFile(const std::string& folder, const std::string& name, std::string_view bytes,
                   Replaced* replaced) {
  *replaced = Replaced::kNo;
  const std::string path = folder + "/" + name;
  const std::string draft = folder + "/." + name + ".new";
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(draft, O_WRONLY | O_CREAT | O_TRUNC));
  FIRN_TRY(WriteAll(file.fd(), bytes, draft));
  if (fsync(file.fd()) != 0) return FileFailure("sync", draft, errno);
  *replaced = Replaced::kPerhaps;
  if (rename(draft.c_str(), path.c_str()) != 0) return FileFailure("rename", draft, errno);
  return SyncFolder(folder);
}

Status SyncFolder(const std::string& path) {
  FIRN_ASSIGN(const FileHandle folder, FileHandle::Open(path, O_RDONLY | O_DIRECTORY));
  if (fsync(folder.fd()) != 0) return FileFailure("sync", path, errno);
  return {};
}

Status MakeFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0) {
    if (errno == EEXIST) return {};
    return FileFailure("mkdir", path, errno);
  }
  const size_t slash = path.rfind('/');
  return SyncFolder(slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash));
}

Status RemoveFile(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name;
  if (unlink(path.c_str()) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};
    return FileFailure("unlink", path, errno);
  }
  return SyncFolder(folder);
}

Status RemoveFolder(const std::string& parent, const std::string& name) {
  const std::string path = parent + "/" + name;
  if (rmdir(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return FileFailure("rmdir", path, errno);
  }
  return SyncFolder(parent);
}

Result<std::vector<std::string>> ListFolder(const std::string& path) {
  DIR* folder = opendir(path.c_str());
  if (folder == nullptr) return FileFailure("list", path, errno);
  std::vector<std::string> names;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(folder);
  return names;
}

}  // namespace firn
