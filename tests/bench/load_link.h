#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <openssl/ssl.h>

#include "common/base/status.h"

namespace firn {

// TLS settings of the load generator. Each of its connections makes a full handshake.
struct LoadTls {
  // The required authority of the server's certificate, which must be for its address; empty: no
  // check.
  std::string ca{};
};

struct FreeLoadTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using LoadTlsContext = std::unique_ptr<SSL_CTX, FreeLoadTls>;

// kInvalid names the invalid file.
Result<LoadTlsContext> MakeLoadTlsContext(const LoadTls& tls);

// A connection of the load generator: TCP, a Unix socket, or TLS over either. Used by one thread.
// Sharp edge: the program must ignore SIGPIPE, which OpenSSL's writes raise.
class LoadLink {
 public:
  // `host` is an IPv4 address, or the path of a Unix socket. Without a context the connection is
  // plain.
  static Result<LoadLink> Dial(const std::string& host, uint16_t port, SSL_CTX* context,
                               const LoadTls& tls);
  LoadLink(LoadLink&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), ssl_(std::move(other.ssl_)) {}
  LoadLink& operator=(LoadLink&& other) noexcept;
  ~LoadLink();

  int fd() const { return fd_; }

  // Continues the handshake with the received bytes. True: it is complete, or not needed.
  Result<bool> Agree();
  // Like Agree, but waits until the handshake is complete.
  Status AgreeWithin(int64_t patience_ms);

  // Sends all bytes; waits if necessary.
  Status Send(std::string_view bytes);
  // Receives what has arrived; 0: nothing is complete.
  Result<size_t> Receive(char* into, size_t size);
  // Whether Receive has more data that the descriptor does not signal.
  bool HasMore() const { return ssl_ && SSL_has_pending(ssl_.get()) == 1; }

  // Closes it with a reset, so that its port is free at once.
  void EndAbruptly() const;

 private:
  explicit LoadLink(int fd) : fd_(fd) {}

  int fd_;
  std::unique_ptr<SSL, FreeLoadTls> ssl_;
};

}  // namespace firn
