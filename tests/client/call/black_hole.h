#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/process.h"

namespace firn {

// An address on 127.0.0.1 that neither accepts nor refuses connections: the listener's queue is
// full and never emptied, so the kernel drops new connections.
class BlackHole {
 public:
  BlackHole() {
    address_.sin_family = AF_INET;
    address_.sin_port = htons(static_cast<uint16_t>(FreePort()));
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = Socket();
    if (bind(listener, Generic(), sizeof address_) != 0 || listen(listener, 0) != 0) Give("bind");
    // More connections than fit in the queue. The remaining ones retry, and would take every place
    // that becomes free.
    for (int i = 0; i < kFillers; ++i) connect(Socket(), Generic(), sizeof address_);
    if (!Eventually(Milliseconds(60'000), [&] { return IsFull(listener); })) Give("fill");
  }
  ~BlackHole() {
    for (const int fd : sockets_) close(fd);
  }
  BlackHole(const BlackHole&) = delete;
  BlackHole& operator=(const BlackHole&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  static constexpr int kFillers = 4;

  [[noreturn]] static void Give(const char* what) {
    std::perror(what);
    std::abort();
  }
  int Socket() {
    return sockets_.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  const sockaddr* Generic() const { return reinterpret_cast<const sockaddr*>(&address_); }

  // For a listener, TCP_INFO has the length of the queue and its maximum.
  static bool IsFull(int listener) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) Give("TCP_INFO");
    return info.tcpi_unacked > info.tcpi_sacked;
  }

  sockaddr_in address_{};
  std::vector<int> sockets_;
};

}  // namespace firn
