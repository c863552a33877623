#include "tests/server/front/raw_peer.h"

#include <algorithm>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace firn::front {
namespace {

constexpr int kPatienceMs = 10'000;

// True when the descriptor has news in time.
bool Await(int fd, short events) {
  pollfd poller{fd, events, 0};
  return poll(&poller, 1, kPatienceMs) == 1;
}

}  // namespace

RawPeer::RawPeer(uint16_t port, const char* from)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, from, &address.sin_addr);
  const int later = 1;  // the port is chosen when it connects, so that thousands find one
  setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
  const bool bound = bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bound && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return;
  close(fd_);
  fd_ = -1;
}

RawPeer::~RawPeer() {
  if (fd_ >= 0) close(fd_);
}

bool RawPeer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!Await(fd_, POLLOUT)) return false;
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string RawPeer::Receive(size_t n) {
  std::string all;
  char some[64 * 1024];
  while (all.size() < n && Await(fd_, POLLIN)) {
    const ssize_t got = recv(fd_, some, std::min(n - all.size(), sizeof some), 0);
    if (got <= 0) break;
    all.append(some, static_cast<size_t>(got));
  }
  return all;
}

std::string RawPeer::ReceiveAll() { return Receive(std::string::npos); }

bool RawPeer::SeesClose() {
  char some[64 * 1024];
  while (Await(fd_, POLLIN)) {
    if (recv(fd_, some, sizeof some, 0) <= 0) return true;
  }
  return false;
}

void RawPeer::FinishSending() { shutdown(fd_, SHUT_WR); }

void RawPeer::ReadSlowly() {
  const int bytes = 4096;
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace firn::front
