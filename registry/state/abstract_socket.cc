#include "registry/state/abstract_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace firn {
namespace {

// Returns a socket with the name, or a negative number and errno.
int Bind(const std::string& name) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a zero first: abstract
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

Result<UnsharedFile> TakeAbstractName(const std::string& name) {
  if (name.size() + 1 > sizeof(sockaddr_un{}.sun_path))
    return Invalid("a socket's name is too long");
  int error = 0;
  UnsharedFile bound = UnsharedFile::Of([&] {
    const int fd = Bind(name);
    error = errno;
    return fd;
  });
  if (bound.fd() >= 0) return bound;
  if (error == EADDRINUSE) return Conflict("the name " + name + " is taken");
  return Unavailable("cannot bind a socket to " + name + ": " + std::strerror(error));
}

}  // namespace firn
