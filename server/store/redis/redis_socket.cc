#include "server/store/redis/redis_socket.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

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
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // also of connect
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(made, address.ai_addr, address.ai_addrlen) == 0) return made;
  const int error = errno;
  close(made);
  errno = error;
  return -1;
}

}  // namespace

Result<std::unique_ptr<RedisSocket>> RedisSocket::Connect(const Endpoint& address,
                                                          const StoreTls& tls,
                                                          Milliseconds time_limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found)) {
    return Unavailable(Cat(address.ToString(), ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, FreeAddresses> list(found);
  int made = -1, error = 0;
  for (const addrinfo* at = found; at != nullptr && made < 0; at = at->ai_next) {
    made = ConnectTo(*at, time_limit);
    error = errno;
  }
  if (made < 0) return Unavailable(Cat(address.ToString(), ": ", ErrorText(error)));
  std::unique_ptr<RedisSocket> connection(new RedisSocket(made, address.ToString(), tls));
  if (tls.mode != TlsMode::kOff) FIRN_TRY(connection->Agree(address.host));
  return connection;
}

RedisSocket::~RedisSocket() { close(socket_); }

Status RedisSocket::Agree(const std::string& name) {
  FIRN_TRY(settings_.CheckFiles());
  FIRN_ASSIGN(tls_, TlsPump::Begin({.ca_file = settings_.ca_file,
                                    .name = settings_.mode == TlsMode::kVerifyFull ? name : "",
                                    .cert_file = settings_.cert_file,
                                    .key_file = settings_.key_file}));
  std::array<char, 16'384> buffer;
  while (tls_->state() == TlsPump::State::kAgreeing) {
    FIRN_TRY(SendAll(std::exchange(tls_->sealed(), {})));
    const auto size = ReceiveSome(buffer.data(), buffer.size());
    if (!size.ok()) {
      const std::string why = Cat("no handshake: ", size.status().message());
      return Unavailable(settings_.Failed(address_, why).message());
    }
    tls_->Feed({buffer.data(), *size});
  }
  const Status sent = SendAll(std::exchange(tls_->sealed(), {}));
  return tls_->state() == TlsPump::State::kFailed ? TlsFailed() : sent;
}

Status RedisSocket::SendAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Unavailable(ErrorText(errno));
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return {};
}

Result<size_t> RedisSocket::ReceiveSome(char* into, size_t size) {
  for (;;) {
    const ssize_t got = recv(socket_, into, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return Unavailable("the server closed the connection");
    if (errno != EINTR) return Unavailable(ErrorText(errno));
  }
}

// A server that lacks the client's certificate may close the connection after the handshake.
Status RedisSocket::Closed(const Status& why) const {
  if (worked_ || !settings_.cert_file.empty()) return why;
  return Unavailable(
      Cat(address_, ": ", why.message(),
          "; if the server requires a client certificate, set tls_cert and tls_key"));
}

Status RedisSocket::Send(std::string_view bytes) {
  if (tls_ == nullptr) return SendAll(bytes);
  tls_->Seal(bytes);
  const Status sent = SendAll(std::exchange(tls_->sealed(), {}));
  if (!sent.ok()) return Closed(sent);
  return tls_->state() == TlsPump::State::kFailed ? TlsFailed() : Status();
}

Result<size_t> RedisSocket::Receive(char* into, size_t size) {
  if (tls_ == nullptr) return ReceiveSome(into, size);
  std::array<char, 16'384> buffer;
  for (;;) {
    if (const size_t read = tls_->Read(into, size); read > 0) {
      worked_ = true;
      return read;
    }
    if (tls_->state() == TlsPump::State::kFailed) return TlsFailed();
    FIRN_TRY(SendAll(std::exchange(tls_->sealed(), {})));  // such as a new key
    const Result<size_t> came = ReceiveSome(buffer.data(), buffer.size());
    if (!came.ok()) return Closed(came.status());
    tls_->Feed({buffer.data(), *came});
  }
}

}  // namespace firn
