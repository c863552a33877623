// firn-floor: the minimum work of a server. One thread, one level-triggered epoll; each readable
// connection gets one read and one write. `--mode=echo` sends the bytes back; `--mode=http` sends
// one fixed answer for each request (which must not have a body); `--mode=tls` is the echo with
// OpenSSL over it, a record for each read. Any cost above this is a server's own.

#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <unordered_map>

#include <arpa/inet.h>
#include <gflags/gflags.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

DEFINE_string(mode, "echo", "echo, http or tls");
DEFINE_string(tls_cert, "", "of the mode tls: certificate chain, PEM");
DEFINE_string(tls_key, "", "its private key, PEM");
DEFINE_int32(port, 0, "loopback port; 0 takes a free one; printed when listening");

namespace {

constexpr std::string_view kFixed =
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 19\r\n\r\n"
    "1234567890123456789";

int Listen() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(FLAGS_port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd, generic, size) != 0 || listen(fd, 1024) != 0) return -1;
  getsockname(fd, generic, &size);
  std::printf("listening on %d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return fd;
}

void Accept(int epoll, int listener) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// Returns the fixed answer once for each end of a header in `bytes`.
std::string_view FixedFor(std::string_view bytes, std::string& out) {
  out.clear();
  size_t at = 0;
  while ((at = bytes.find("\r\n\r\n", at)) != std::string_view::npos) {
    out += kFixed;
    at += 4;
  }
  return out;
}

char input[256 * 1024];

void Serve(int fd, bool http) {
  static std::string output;
  const ssize_t got = recv(fd, input, sizeof input, 0);
  if (got <= 0) {
    close(fd);
    return;
  }
  std::string_view answer(input, static_cast<size_t>(got));
  if (http) answer = FixedFor(answer, output);
  if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) close(fd);
}

// The mode tls: a session for each descriptor.
class TlsEcho {
 public:
  // Returns false if the files are unusable.
  bool Open() {
    SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
    SSL_CTX_set_read_ahead(context_, 1);  // a record with one read
    SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
    return SSL_CTX_use_certificate_chain_file(context_, FLAGS_tls_cert.c_str()) == 1 &&
           SSL_CTX_use_PrivateKey_file(context_, FLAGS_tls_key.c_str(), SSL_FILETYPE_PEM) == 1;
  }

  void Serve(int fd) {
    SSL*& ssl = sessions_[fd];
    if (ssl == nullptr) {
      ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      SSL_set_accept_state(ssl);
    }
    if (Echo(ssl)) return;
    SSL_free(ssl);
    sessions_.erase(fd);
    close(fd);
  }

 private:
  // Continues the handshake and echoes what has arrived; returns false at the end.
  static bool Echo(SSL* ssl) {
    int result = 0;
    do {
      ERR_clear_error();
      result = SSL_read(ssl, input, sizeof input);
      if (result > 0 && SSL_write(ssl, input, result) != result) return false;
    } while (result > 0 && SSL_has_pending(ssl) == 1);
    return result > 0 || SSL_get_error(ssl, result) == SSL_ERROR_WANT_READ;
  }

  SSL_CTX* const context_ = SSL_CTX_new(TLS_server_method());
  std::unordered_map<int, SSL*> sessions_;
};

}  // namespace

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's writes raise it
  TlsEcho tls;
  const bool by_tls = FLAGS_mode == "tls";
  if (by_tls && !tls.Open()) return ERR_print_errors_fp(stderr), 1;
  const int listener = Listen();
  if (listener < 0) return std::perror("listen"), 1;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener;
  epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
  while (true) {
    epoll_event events[256];
    const int n = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == listener) {
        Accept(epoll, listener);
      } else if (by_tls) {
        tls.Serve(events[i].data.fd);
      } else {
        Serve(events[i].data.fd, FLAGS_mode == "http");
      }
    }
  }
}
