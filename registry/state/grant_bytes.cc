#include "registry/state/grant_bytes.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "registry/state/file_system.h"

namespace firn {
namespace {

constexpr auto kGrantBytes = StateFolder::kGrantBytes;

Status WriteAt(int fd, size_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return FileFailure("write", path, errno);
    offset += static_cast<size_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status CheckDiesWithTheBoot(const struct statfs& system, const std::string& path) {
  if (IsInMemory(static_cast<uint32_t>(system.f_type))) return {};
  return Unavailable(path + " is not on a tmpfs: its files would survive a reboot");
}

std::string FolderOf(const std::string& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

Result<GrantBytes> GrantBytes::Open(const std::string& path) {
  FIRN_ASSIGN(LockedFile file, LockedFile::Open(path));
  GrantBytes grant(std::move(file), false);
  FIRN_TRY(grant.CheckSize());
  return grant;
}

Result<GrantBytes> GrantBytes::OpenInMemory(const std::string& path) {
  FIRN_ASSIGN(LockedFile file, LockedFile::Open(path));
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) return FileFailure("stat", path, errno);
  if (info.st_uid != geteuid()) return Invalid(path + " belongs to another user");
  if (info.st_nlink != 1) return Invalid(path + " has a second hard link");
  GrantBytes grant(std::move(file), true);
  FIRN_TRY(grant.CheckSize());
  return grant;
}

// An empty file, or a short one of blanks only, is new. Any other wrong size means that there was a
// claim: that must not look like a first start. The next write of a grant restores the size.
Status GrantBytes::CheckSize() {
  struct stat info {};
  if (fstat(file_.fd(), &info) != 0) return FileFailure("stat", file_.path(), errno);
  if (info.st_size == off_t{kGrantBytes}) return {};
  wrong_size_ = info.st_size > off_t{kGrantBytes};
  if (!wrong_size_) {
    FIRN_ASSIGN(const std::string bytes, ReadAll(file_.fd(), kGrantBytes, file_.path()));
    wrong_size_ = bytes.find_first_not_of(' ') != std::string::npos;
  }
  return wrong_size_ ? Status() : Allocate();
}

Status GrantBytes::Allocate() {
  const int fd = file_.fd();
  const std::string& path = file_.path();
  if (ftruncate(fd, 0) != 0) return FileFailure("truncate", path, errno);
  if (const int error = posix_fallocate(fd, 0, kGrantBytes); error != 0) {
    return FileFailure("allocate", path, error);
  }
  FIRN_TRY(WriteAt(fd, 0, std::string(kGrantBytes, ' '), path));
  if (in_memory_) return {};
  if (fsync(fd) != 0) return FileFailure("sync", path, errno);
  return SyncFolder(FolderOf(path));
}

Result<std::string> GrantBytes::Read() const {
  if (wrong_size_)
    return Corrupt("the grant file " + file_.path() +
                   " has a wrong size; it is damaged, or of another format");
  return ReadAll(file_.fd(), kGrantBytes, file_.path());
}

Status GrantBytes::Write(size_t offset, std::string_view bytes,
                         StateFolder::Durability durability) {
  if (offset + bytes.size() > kGrantBytes) Die("a write beyond the end of the grant file");
  if (wrong_size_) FIRN_TRY(Allocate());
  wrong_size_ = false;
  FIRN_TRY(WriteAt(file_.fd(), offset, bytes, file_.path()));
  if (durability == StateFolder::Durability::kDisk && fdatasync(file_.fd()) != 0) {
    return FileFailure("sync", file_.path(), errno);
  }
  return {};
}

Status GrantBytes::Remove() {
  const std::string& path = file_.path();
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return FileFailure("remove", path, errno);
  return {};
}

Result<std::string> GrantFolder(const std::string& grant_dir) {
  struct statfs system {};
  if (statfs(grant_dir.c_str(), &system) != 0) return FileFailure("use", grant_dir, errno);
  FIRN_TRY(CheckDiesWithTheBoot(system, grant_dir));
  const std::string path = Cat(grant_dir, "/firn-", geteuid());
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return FileFailure("make", path, errno);
  FIRN_ASSIGN(const FileHandle folder, FileHandle::Open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  struct stat info {};
  if (fstat(folder.fd(), &info) != 0) return FileFailure("stat", path, errno);
  if (info.st_uid != geteuid()) return Denied(path + " belongs to another user");
  if ((info.st_mode & 077) != 0) return Denied(path + " is open to other users; run chmod 700");
  if (fstatfs(folder.fd(), &system) != 0) return FileFailure("use", path, errno);
  FIRN_TRY(CheckDiesWithTheBoot(system, path));
  return path;
}

}  // namespace firn
