#include "tests/support/fleet/channel.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr timeval kOpenMax{20, 0};
constexpr int kAwaitMs = 20;

void Set(int fd, int level, int option, int value) {
  setsockopt(fd, level, option, &value, sizeof value);
}

bool Connect(int fd, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

int Clamped(size_t size) {
  return static_cast<int>(std::min<size_t>(size, std::numeric_limits<int>::max()));
}

}  // namespace

std::unique_ptr<Channel> Channel::Open(const Options& options) {
  std::unique_ptr<Channel> channel(new Channel(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  const int fd = channel->fd_;
  // Set before it connects, because both are negotiated then.
  if (options.window_bytes > 0) Set(fd, SOL_SOCKET, SO_RCVBUF, options.window_bytes);
  if (options.segment_bytes > 0) Set(fd, IPPROTO_TCP, TCP_MAXSEG, options.segment_bytes);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kOpenMax, sizeof kOpenMax);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kOpenMax, sizeof kOpenMax);
  if (!Connect(fd, options.port)) return nullptr;
  Set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  if (!options.tls_ca.empty() && !channel->Encrypt(options.tls_ca)) return nullptr;
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return channel;
}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

bool Channel::Encrypt(const std::string& ca) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
  if (SSL_CTX_load_verify_locations(context_.get(), ca.c_str(), nullptr) != 1) return false;
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return SSL_set_fd(ssl_.get(), fd_) == 1 && SSL_connect(ssl_.get()) == 1;
}

std::optional<size_t> Channel::Moved(int n) const {
  if (n > 0) return static_cast<size_t>(n);
  const int error = SSL_get_error(ssl_.get(), n);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return 0;
  return std::nullopt;
}

std::optional<size_t> Channel::Send(std::string_view bytes) {
  if (bytes.empty()) return 0;
  if (ssl_) return Moved(SSL_write(ssl_.get(), bytes.data(), Clamped(bytes.size())));
  const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n >= 0) return static_cast<size_t>(n);
  return errno == EAGAIN ? std::optional<size_t>(0) : std::nullopt;
}

std::optional<size_t> Channel::Receive(char* into, size_t size) {
  if (ssl_) return Moved(SSL_read(ssl_.get(), into, Clamped(size)));
  const ssize_t n = recv(fd_, into, size, 0);
  if (n > 0) return static_cast<size_t>(n);
  return n < 0 && errno == EAGAIN ? std::optional<size_t>(0) : std::nullopt;
}

void Channel::FinishSending() { shutdown(fd_, SHUT_WR); }

void Channel::Await(bool to_send) const {
  const int events = POLLIN | (to_send ? POLLOUT : 0);
  pollfd poller{fd_, static_cast<short>(events), 0};
  poll(&poller, 1, kAwaitMs);
}

}  // namespace firn
