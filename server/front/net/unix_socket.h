#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "common/base/files.h"
#include "common/base/status.h"

namespace firn::front {

// A listening Unix socket and its file. The destructor removes the file, unless another socket has
// replaced it. A process that is killed leaves the file, and the next server replaces it.
class UnixSocket {
 public:
  // Listens at `path`. The file gets these permissions, and the process's user and group. Replaces
  // a socket file on which no program accepts connections. Fails if a program does, or if the path
  // exists and is not a socket.
  static Result<std::unique_ptr<UnixSocket>> Listen(const std::string& path, mode_t mode);
  ~UnixSocket();
  UnixSocket(const UnixSocket&) = delete;
  UnixSocket& operator=(const UnixSocket&) = delete;

  int fd() const { return socket_.fd(); }

 private:
  UnixSocket(std::string path, FileHandle socket)
      : path_(std::move(path)), socket_(std::move(socket)) {}

  const std::string path_;
  const FileHandle socket_;
  dev_t device_ = 0;  // of the file, like the next
  ino_t inode_ = 0;
};

// Returns the user of the process at the other end of a connected Unix socket; the overflow user
// (65534) if the server's user namespace does not map it.
uid_t UserOfPeer(int fd);

}  // namespace firn::front
