#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "common/base/units.h"

namespace firn {

// A client's connection to a loopback port: TCP, or TLS over it. Only opening it blocks, for some
// seconds at most. Used by one thread.
class Channel {
 public:
  struct Options {
    int port = 0;
    int window_bytes = 0;     // of the receive buffer; 0: the kernel's default
    int segment_bytes = 0;    // maximum packet to the client; 0: likewise. A small value keeps the
                              // server's send buffer small, as a slow line would
    std::string tls_ca = {};  // file with the server's authority; empty: no TLS
  };

  // Returns null if the connection is refused, or the TLS handshake fails.
  static std::unique_ptr<Channel> Open(const Options& options);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Returns the number of bytes; 0: none just now; nullopt: the connection has ended.
  std::optional<size_t> Send(std::string_view bytes);
  std::optional<size_t> Receive(char* into, size_t size);

  // Shuts down sending; receiving continues.
  void FinishSending();

  // Waits briefly until data have arrived or, on request, can be sent.
  void Await(bool to_send) const;

 private:
  struct Freed {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  explicit Channel(int fd) : fd_(fd) {}
  bool Encrypt(const std::string& ca);
  std::optional<size_t> Moved(int n) const;

  const int fd_;
  std::unique_ptr<SSL_CTX, Freed> context_;
  std::unique_ptr<SSL, Freed> ssl_;  // null: plain
};

}  // namespace firn
