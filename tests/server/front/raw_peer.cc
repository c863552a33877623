#include "tests/server/front/raw_peer.h"

#include <algorithm>
#include <csignal>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/address.h"

namespace firn::front {
namespace {

constexpr int kPatienceMs = 10'000;

// Returned after a timeout instead of a number of bytes.
constexpr ssize_t kSaysNothing = -1000;

// Returns true if the descriptor becomes ready in time.
bool Await(int fd, short events) {
  pollfd poller{fd, events, 0};
  return poll(&poller, 1, kPatienceMs) == 1;
}

}  // namespace

std::string ClientHello(int version) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_max_proto_version(context.get(), version);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()), SSL_free);
  SSL_set_bio(client.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_connect(client.get());
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(SSL_get_wbio(client.get()), &bytes);
  return {bytes, static_cast<size_t>(size)};
}

RawPeer::RawPeer(uint16_t port, const char* from, SSL_CTX* tls)
    : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, from, &address.sin_addr);
  const int later = 1;  // choose the port on connect, so that thousands of peers find one
  setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
  const bool bound = bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bound && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    if (tls != nullptr) BeginTls(tls);
    return;
  }
  close(fd_);
  fd_ = -1;
}

RawPeer::RawPeer(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const Address address = UnixAddress(path);
  if (connect(fd_, address.get(), address.length) == 0) return;
  close(fd_);
  fd_ = -1;
}

void RawPeer::BeginTls(SSL_CTX* tls) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's writes raise it
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  ssl_.reset(SSL_new(tls));
  SSL_set_fd(ssl_.get(), fd_);
  int result = 0;
  do {
    ERR_clear_error();
    result = SSL_connect(ssl_.get());
  } while (result != 1 && WaitsForTls(result));
}

bool RawPeer::WaitsForTls(int result) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Await(fd_, POLLIN);
    case SSL_ERROR_WANT_WRITE:
      return Await(fd_, POLLOUT);
    default:
      return false;
  }
}

RawPeer::~RawPeer() {
  if (fd_ >= 0) close(fd_);
}

ssize_t RawPeer::SendSome(std::string_view bytes) {
  if (!ssl_) {
    if (!Await(fd_, POLLOUT)) return -1;
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  size_t sent = 0;
  int result = 0;
  do {
    ERR_clear_error();
    result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent);
  } while (result != 1 && WaitsForTls(result));
  return result == 1 ? static_cast<ssize_t>(sent) : -1;
}

ssize_t RawPeer::ReceiveSome(char* into, size_t size) {
  if (!ssl_) return Await(fd_, POLLIN) ? recv(fd_, into, size, 0) : kSaysNothing;
  size_t got = 0;
  int result = 0;
  do {
    ERR_clear_error();
    result = SSL_read_ex(ssl_.get(), into, size, &got);
    if (result == 1) return static_cast<ssize_t>(got);
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) return 0;
  } while (Await(fd_, POLLIN));
  return kSaysNothing;
}

bool RawPeer::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = SendSome(bytes);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string RawPeer::Receive(size_t n) {
  std::string all;
  char some[64 * 1024];
  while (all.size() < n) {
    const ssize_t got = ReceiveSome(some, std::min(n - all.size(), sizeof some));
    if (got <= 0) break;
    all.append(some, static_cast<size_t>(got));
  }
  return all;
}

std::string RawPeer::ReceiveAll() { return Receive(std::string::npos); }

bool RawPeer::SeesClose() {
  char some[64 * 1024];
  while (true) {
    const ssize_t got = ReceiveSome(some, sizeof some);
    if (got <= 0) return got != kSaysNothing;
  }
}

void RawPeer::FinishSending() {
  if (ssl_) SSL_shutdown(ssl_.get());
  shutdown(fd_, SHUT_WR);
}

void RawPeer::ReadSlowly(int bytes) {
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace firn::front
