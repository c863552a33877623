#include "common/net/blocking_socket.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/cat.h"

namespace firn {
namespace {

// The kernel reports a timeout as one of these.
std::string ErrorText(int error) {
  const bool late = error == EAGAIN || error == EINPROGRESS;
  return late ? "timed out" : std::strerror(error);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

// Returns a connected socket, or -1 with errno set.
int ConnectTo(const addrinfo& address, Milliseconds time_limit) {
  const int made = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return made;
  const timeval limit{.tv_sec = time_limit.count() / 1000,
                      .tv_usec = time_limit.count() % 1000 * 1000};
  const int on = 1;
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // also for connect
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(made, address.ai_addr, address.ai_addrlen) == 0) return made;
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

}  // namespace

Result<BlockingSocket> BlockingSocket::Connect(const Endpoint& to, Milliseconds time_limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(to.port);
  if (const int error = getaddrinfo(to.host.c_str(), port.c_str(), &hints, &found)) {
    return Unavailable(Cat(to.ToString(), ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int made = -1, error = 0;
  for (const addrinfo* at = found; at != nullptr && made < 0; at = at->ai_next) {
    made = ConnectTo(*at, time_limit);
    error = errno;
  }
  if (made < 0) return Unavailable(Cat(to.ToString(), ": ", ErrorText(error)));
  return BlockingSocket(made);
}

BlockingSocket::~BlockingSocket() {
  if (socket_ >= 0) close(socket_);
}

Status BlockingSocket::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Unavailable(ErrorText(errno));
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<size_t> BlockingSocket::Receive(char* into, size_t size) {
  for (;;) {
    const ssize_t got = recv(socket_, into, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return Unavailable("the server closed the connection");
    if (errno != EINTR) return Unavailable(ErrorText(errno));
  }
}

}  // namespace firn
