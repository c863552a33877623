#include "registry/state/locked_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/base/files.h"

namespace firn {
namespace {

constexpr int kReopensMax = 8;

// Opens the file, private to the user, without following a symbolic link.
Result<FileHandle> OpenOwn(const std::string& path) {
  return OpenRegular(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
}

}  // namespace

// The lock is on an inode, not on a name: if the file was removed or replaced between open and
// lock, opens the name again.
Result<LockedFile> LockedFile::Open(const std::string& path) {
  for (int i = 0; i < kReopensMax; ++i) {
    FIRN_ASSIGN(UnsharedFile file, UnsharedFile::From([&] { return OpenOwn(path); }));
    if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return Conflict(path + " is locked by another process");
      return FileFailure("lock", path, errno);
    }
    struct stat locked {};
    struct stat named {};
    if (fstat(file.fd(), &locked) != 0) return FileFailure("stat", path, errno);
    const bool same = lstat(path.c_str(), &named) == 0 && named.st_ino == locked.st_ino &&
                      named.st_dev == locked.st_dev;
    if (!same) continue;
    const FileIdentity identity{locked.st_dev, locked.st_ino, BirthOf(file.fd())};
    return LockedFile(path, std::move(file), identity);
  }
  return Conflict(path + " was replaced during every attempt to lock it");
}

}  // namespace firn
