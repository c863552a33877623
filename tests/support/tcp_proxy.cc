#include "tests/support/tcp_proxy.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/status.h"
#include "tests/support/process.h"

namespace firn {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void Prepare(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

// Listens on a free port, which another program may take between finding and binding it.
int Listen(int* port) {
  constexpr int kTriesMax = 20;
  for (int i = 0; i < kTriesMax; ++i) {
    *port = FreePort();
    const sockaddr_in address = Loopback(*port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
        listen(fd, 64) == 0) {
      return fd;
    }
    close(fd);
  }
  Die("a proxy finds no port");
}

}  // namespace

TcpProxy::TcpProxy(int server_port)
    : server_port_(server_port),
      listener_(Listen(&port_)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

TcpProxy::~TcpProxy() {
  stopping_ = true;
  eventfd_write(wake_, 1);
  thread_.join();
  close(listener_);
  close(wake_);
}

void TcpProxy::Cut() {
  cut_ = true;
  eventfd_write(wake_, 1);
}

void TcpProxy::Refuse(bool refuse) {
  refuse_ = refuse;
  if (refuse) Cut();
}

// Two sockets per connection, after the two that always exist, in the order of `open_`.
void TcpProxy::Run() {
  while (!stopping_) {
    std::vector<pollfd> waits{{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    const auto wait = [&](const Direction& in, const Direction& out) {
      const int events = (in.buffered < kBufferedMax ? POLLIN : 0) |
                         (!out.chunks.empty() && out.chunks.front().due <= TestNow() ? POLLOUT : 0);
      waits.push_back({in.from, static_cast<short>(events), 0});
    };
    for (const Connection& connection : open_) {
      wait(connection.up, connection.down);
      wait(connection.down, connection.up);
    }
    poll(waits.data(), waits.size(), PollTimeout());
    eventfd_t ignored = 0;
    eventfd_read(wake_, &ignored);
    size_t at = 2;
    for (Connection& connection : open_) {
      if (waits[at++].revents != 0) Receive(connection, connection.up, drop_requests_);
      if (waits[at++].revents != 0) Receive(connection, connection.down, drop_answers_);
      Send(connection, connection.up);
      Send(connection, connection.down);
    }
    const bool cut = cut_.exchange(false);
    for (Connection& connection : open_) connection.broken = connection.broken || cut;
    CloseBroken();
    if (waits[0].revents != 0) Accept();
  }
  for (Connection& connection : open_) connection.broken = true;
  CloseBroken();
}

int TcpProxy::PollTimeout() const {
  int64_t timeout = 1000;
  for (const Connection& connection : open_) {
    for (const Direction* direction : {&connection.up, &connection.down}) {
      if (direction->chunks.empty()) continue;
      timeout = std::min(timeout, (direction->chunks.front().due - TestNow()).count());
    }
  }
  return static_cast<int>(std::max<int64_t>(timeout, 0));
}

void TcpProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (client < 0) return;
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(server_port_);
  const bool connected =
      !refuse_ && connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  if (!connected) {
    close(client);
    close(server);
    return;
  }
  Prepare(client);
  Prepare(server);
  open_.push_back({{client, server}, {server, client}});
  ++connections_;
}

void TcpProxy::Receive(Connection& connection, Direction& direction, bool drop) {
  char buffer[64 << 10];
  const ssize_t got = recv(direction.from, buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    connection.broken = true;
    return;
  }
  if (drop) {
    dropped_ += got;
    return;
  }
  const auto size = static_cast<size_t>(got);
  direction.chunks.push_back({TestNow() + Milliseconds(delay_ms_), std::string(buffer, size)});
  direction.buffered += size;
}

void TcpProxy::Send(Connection& connection, Direction& direction) {
  while (!direction.chunks.empty() && direction.chunks.front().due <= TestNow()) {
    std::string& bytes = direction.chunks.front().bytes;
    const ssize_t sent = send(direction.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      connection.broken = connection.broken || (errno != EAGAIN && errno != EINTR);
      return;
    }
    direction.buffered -= static_cast<size_t>(sent);
    bytes.erase(0, static_cast<size_t>(sent));
    if (bytes.empty()) direction.chunks.pop_front();
  }
}

void TcpProxy::CloseBroken() {
  for (auto connection = open_.begin(); connection != open_.end();) {
    if (!connection->broken) {
      ++connection;
      continue;
    }
    close(connection->up.from);
    close(connection->up.to);
    connection = open_.erase(connection);
    --connections_;
  }
}

}  // namespace firn
