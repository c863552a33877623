#include "server/front/net/unix_socket.h"

#include <cerrno>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/address.h"

namespace firn::front {
namespace {

constexpr uid_t kOverflowUser = 65534;

FileHandle NewSocket(int flags) {
  return FileHandle(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Locks the folder of a socket file, so that of two servers only one replaces the file.
Result<FileHandle> LockFolderOf(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  FIRN_ASSIGN(FileHandle handle, FileHandle::Open(folder, O_RDONLY | O_DIRECTORY));
  while (flock(handle.fd(), LOCK_EX) != 0) {
    if (errno != EINTR) return FileFailure("lock", folder, errno);
  }
  return handle;
}

// Removes a socket file that a killed server has left.
Status RemoveStale(const std::string& path, const Address& address) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) {
    return errno == ENOENT ? Status() : FileFailure("examine", path, errno);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Conflict("exists and is not a socket; remove it, or choose another path");
  }
  const FileHandle probe = NewSocket(SOCK_NONBLOCK);
  const bool connected = connect(probe.fd(), address.get(), address.length) == 0;
  // EAGAIN: the queue of connections that wait for an accept is full.
  if (connected || errno == EAGAIN) {
    return Conflict("another program accepts connections on it; stop it, or choose another path");
  }
  if (errno != ECONNREFUSED) return FileFailure("connect to", path, errno);
  return unlink(path.c_str()) == 0 ? Status() : FileFailure("remove", path, errno);
}

}  // namespace

Result<std::unique_ptr<UnixSocket>> UnixSocket::Listen(const std::string& path, mode_t mode) {
  const Address address = UnixAddress(path);
  if (!address.known()) return Invalid("the path of a Unix socket is empty or too long");
  FIRN_ASSIGN(const FileHandle lock, LockFolderOf(path));
  FIRN_TRY(RemoveStale(path, address));
  FileHandle socket = NewSocket(0);
  if (socket.fd() < 0) return FileFailure("open a socket for", path, errno);
  if (bind(socket.fd(), address.get(), address.length) != 0) {
    return FileFailure("bind", path, errno);
  }
  std::unique_ptr<UnixSocket> made(new UnixSocket(path, std::move(socket)));
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0) return FileFailure("examine", path, errno);
  made->device_ = file.st_dev;
  made->inode_ = file.st_ino;
  // No program can connect before listen().
  if (chmod(path.c_str(), mode) != 0) return FileFailure("set the permissions of", path, errno);
  if (listen(made->fd(), SOMAXCONN) != 0) return FileFailure("listen on", path, errno);
  return made;
}

UnixSocket::~UnixSocket() {
  const Result<FileHandle> lock = LockFolderOf(path_);
  struct stat file {};
  if (lstat(path_.c_str(), &file) != 0) return;
  if (file.st_dev == device_ && file.st_ino == inode_) unlink(path_.c_str());
}

uid_t UserOfPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.uid : kOverflowUser;
}

}  // namespace firn::front
