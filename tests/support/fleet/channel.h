#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

#include "common/base/units.h"

namespace firn {

// A client's connection to a port of loopback: TCP, or TLS over it. Only opening it blocks, for
// some seconds at most. Used by one thread.
class Channel {
 public:
  struct Options {
    int port = 0;
    int window_bytes = 0;   // of the receive buffer; 0: as the kernel likes it
    int segment_bytes = 0;  // of a packet to the client, at most; 0: likewise. Small ones keep the
                            // server's send buffer small, as a slow line would
    std::string tls_ca = {};  // the file of the server's authority; empty: no TLS
  };

  // Null when nobody takes the connection, or encryption cannot be agreed upon.
  static std::unique_ptr<Channel> Open(const Options& options);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // How many bytes went, or came: 0 means none just now. Nothing: the connection has ended.
  std::optional<size_t> Send(std::string_view bytes);
  std::optional<size_t> Receive(char* into, size_t size);

  // Nothing more will be sent; what comes is still received.
  void FinishSending();

  // Waits until something has come or, when asked to, can be sent, for a little while at most.
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
