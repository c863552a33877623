#include "client/socket/blocking_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

namespace firn::client {
namespace {

int64_t MsLeft(Micros until, const Clock& clock) {
  const int64_t us = (until - clock.BootMicros()).count();
  return us <= 0 ? 0 : (us + 999) / 1000;
}

Outcome Unreachable(const char* call, int error) {
  return Outcome::Of(AttemptEnd::kUnreachable, Cat(call, ": ", strerror(error)));
}

// Waits for a connection that is on its way. 0, or what went wrong; ETIMEDOUT when it took too
// long.
int AwaitConnection(int fd, Micros until, const Clock& clock) {
  pollfd wait{fd, POLLOUT, 0};
  for (int64_t left; (left = MsLeft(until, clock)) > 0;) {
    const int ready = poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return errno;
    if (ready <= 0) continue;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
  }
  return ETIMEDOUT;
}

static_assert(EAGAIN == EWOULDBLOCK);

Outcome Failed(const char* what, int error) {
  if (error == EAGAIN) return Outcome::Of(AttemptEnd::kTimeout, {});
  return Outcome::Of(AttemptEnd::kClosed, Cat(what, ": ", strerror(error)));
}

}  // namespace

BlockingSocket::~BlockingSocket() {
  setting_.fds.Close(fd_, [this] { close(fd_); });
}

Tried<std::unique_ptr<BlockingSocket>> BlockingSocket::Connect(const Address& address, Micros until,
                                                               const Setting& setting) {
  const int fd = setting.fds.Open([&address] {
    return ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  });
  if (fd < 0) return Unreachable("socket", errno);
  std::unique_ptr<BlockingSocket> made(new BlockingSocket(fd, setting));
  int error = connect(fd, address.get(), address.length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) error = AwaitConnection(fd, until, setting.clock);
  if (error == ETIMEDOUT) return Outcome::Of(AttemptEnd::kConnectTimeout, {});
  if (error != 0) return Unreachable("connect", error);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // From here on it is the kernel that waits, which spares a poll for each answer.
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return Unreachable("fcntl", errno);
  return made;
}

bool BlockingSocket::Limit(int option, Micros until, int64_t& set_ms) {
  const int64_t left_ms = MsLeft(until, setting_.clock);
  if (left_ms == 0) return false;
  if (left_ms == set_ms) return true;  // as it mostly is, for one limit holds for most calls
  const timeval limit{left_ms / 1000, left_ms % 1000 * 1000};
  setsockopt(fd_, SOL_SOCKET, option, &limit, sizeof limit);
  set_ms = left_ms;
  return true;
}

Outcome BlockingSocket::Send(std::string_view bytes, Micros until) {
  // The kernel mostly takes all of a request at once; only what it does not take has to wait.
  for (bool waits = false; !bytes.empty(); waits = true) {
    if (waits && !Limit(SO_SNDTIMEO, until, send_limit_ms_)) return Failed("send", EAGAIN);
    const int flags = MSG_NOSIGNAL | (waits ? 0 : MSG_DONTWAIT);
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), flags);
    if (sent < 0 && errno != EINTR && (waits || errno != EAGAIN)) return Failed("send", errno);
    bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
  }
  return {};
}

Tried<size_t> BlockingSocket::Receive(char* into, size_t size, Micros until) {
  while (Limit(SO_RCVTIMEO, until, receive_limit_ms_)) {
    const ssize_t n = recv(fd_, into, size, 0);
    if (n == 0) return Outcome::Of(AttemptEnd::kClosed, {});
    if (n > 0) return static_cast<size_t>(n);
    if (errno != EINTR) return Failed("receive", errno);
  }
  return Failed("receive", EAGAIN);
}

}  // namespace firn::client
