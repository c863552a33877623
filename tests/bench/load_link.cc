#include "tests/bench/load_link.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/net/address.h"

namespace firn {
namespace {

constexpr int kSendPatienceMs = 60'000;

Status Failed(const char* call) { return Unavailable(std::string(call) + ": " + strerror(errno)); }

Status TlsFailed(const std::string& what) {
  char reason[256] = "the connection broke";
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, reason, sizeof reason);
  return Unavailable(what + ": " + reason);
}

bool Await(int fd, short events, int64_t patience_ms) {
  pollfd poller{fd, events, 0};
  return poll(&poller, 1, static_cast<int>(patience_ms)) == 1;
}

bool RequireAddress(SSL* ssl, const std::string& host) {
  return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1;
}

}  // namespace

Result<LoadTlsContext> MakeLoadTlsContext(const LoadTls& tls) {
  LoadTlsContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(c, 1);  // a record with one read
  if (!tls.ca.empty()) {
    if (SSL_CTX_load_verify_file(c, tls.ca.c_str()) != 1) return Invalid(tls.ca + ": no CA");
    SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  }
  return context;
}

LoadLink& LoadLink::operator=(LoadLink&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(ssl_, other.ssl_);
  return *this;
}

LoadLink::~LoadLink() {
  if (fd_ >= 0) close(fd_);
}

Result<LoadLink> LoadLink::Dial(const std::string& host, uint16_t port, SSL_CTX* context,
                                const LoadTls& tls) {
  const Address address = NumericAddress({host, port});
  if (!address.known()) return Invalid("neither an IP address nor a path: " + host);
  LoadLink link(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (link.fd_ < 0) return Failed("socket");
  if (connect(link.fd_, address.get(), address.length) != 0) return Failed("connect");
  const int on = 1;
  setsockopt(link.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (context == nullptr) return link;
  fcntl(link.fd_, F_SETFL, O_NONBLOCK);
  link.ssl_.reset(SSL_new(context));
  SSL* const ssl = link.ssl_.get();
  if (ssl == nullptr || SSL_set_fd(ssl, link.fd_) != 1) return TlsFailed("TLS");
  if (!tls.ca.empty() && !RequireAddress(ssl, host)) return Invalid("no address to look for");
  SSL_set_connect_state(ssl);
  return link;
}

Result<bool> LoadLink::Agree() {
  if (!ssl_) return true;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return true;
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return false;
  return TlsFailed("TLS handshake");
}

Status LoadLink::AgreeWithin(int64_t patience_ms) {
  while (true) {
    FIRN_ASSIGN(const bool agreed, Agree());
    if (agreed) return {};
    const short events = SSL_want_write(ssl_.get()) ? POLLOUT : POLLIN;
    if (!Await(fd_, events, patience_ms)) return Unavailable("no answer in the TLS handshake");
  }
}

Status LoadLink::Send(std::string_view bytes) {
  if (!ssl_) {
    // A blocking send: `depth` limits the bytes in flight, so they fit into the socket's buffers
    // unless the server has stopped reading; then waiting would not help.
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(bytes.size()) ? Status() : Failed("send");
  }
  while (!bytes.empty()) {
    ERR_clear_error();
    size_t sent = 0;
    const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &sent);
    bytes.remove_prefix(sent);
    if (result == 1) continue;
    if (SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_WRITE) return TlsFailed("send");
    if (!Await(fd_, POLLOUT, kSendPatienceMs)) return Unavailable("the server does not read");
  }
  return {};
}

Result<size_t> LoadLink::Receive(char* into, size_t size) {
  if (!ssl_) {
    const ssize_t got = recv(fd_, into, size, 0);
    if (got < 0) return Failed("recv");
    if (got == 0) return Unavailable("the server closed the connection");
    return static_cast<size_t>(got);
  }
  ERR_clear_error();
  size_t got = 0;
  const int result = SSL_read_ex(ssl_.get(), into, size, &got);
  if (result == 1) return got;
  if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return size_t{0};
  return TlsFailed("the server closed the connection");
}

void LoadLink::EndAbruptly() const {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace firn
