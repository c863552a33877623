#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace firn::front {

// The first message of a client whose highest version is `version`, in its record.
std::string ClientHello(int version = TLS1_3_VERSION);

// A peer that controls every byte, and so can misbehave. Every wait has a timeout of some seconds,
// so a test fails instead of hanging.
class RawPeer {
 public:
  // `from`: the loopback address from which it connects. With `tls` it first completes a handshake,
  // and everything is encrypted.
  explicit RawPeer(uint16_t port, const char* from = "127.0.0.1", SSL_CTX* tls = nullptr);
  // Connects to the Unix socket at `path`, without TLS.
  explicit RawPeer(const std::string& path);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return fd_ >= 0; }

  // Returns false if the server has closed or reset the connection.
  bool Send(std::string_view bytes);

  // Returns exactly `n` bytes, or fewer if the server closes or is silent for too long.
  std::string Receive(size_t n);
  // Returns everything until the server closes.
  std::string ReceiveAll();

  // Waits until the server closes the connection, for some seconds at most.
  bool SeesClose();

  void FinishSending();

  // Sets a small receive buffer, so that unread answers soon accumulate at the server.
  void ReadSlowly(int bytes = 4096);

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void BeginTls(SSL_CTX* tls);
  // Returns the number of bytes; 0 or less at the end or after a timeout.
  ssize_t ReceiveSome(char* into, size_t size);
  ssize_t SendSome(std::string_view bytes);
  // Whether OpenSSL's call, which returned `result`, can be retried; waits until it can.
  bool WaitsForTls(int result);

  int fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace firn::front
