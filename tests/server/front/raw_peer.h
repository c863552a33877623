#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/ssl.h>

namespace firn::front {

// The other side of a connection, byte for byte: what a well-behaved client would never do.
// Everything has a limit of some seconds; a test fails instead of hanging.
class RawPeer {
 public:
  // `from`: the address it calls from, one of loopback's. With `tls` it shakes hands first, and all
  // that is said is encrypted; an end before that is seen as any other.
  explicit RawPeer(uint16_t port, const char* from = "127.0.0.1", SSL_CTX* tls = nullptr);
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  bool connected() const { return fd_ >= 0; }

  // False when the server has closed or reset the connection.
  bool Send(std::string_view bytes);

  // Exactly `n` bytes, or fewer when the server closes or says nothing for too long.
  std::string Receive(size_t n);
  // Everything until the server closes.
  std::string ReceiveAll();

  // The server closes the connection, within some seconds.
  bool SeesClose();

  // Says that nothing more will come.
  void FinishSending();

  // A small receive buffer, so that unread answers pile up at the server soon.
  void ReadSlowly();

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  void BeginTls(SSL_CTX* tls);
  // How many bytes came; 0 or less at the end, or when it waited in vain.
  ssize_t ReceiveSome(char* into, size_t size);
  ssize_t SendSome(std::string_view bytes);
  // Whether OpenSSL's verb, which ended with `result`, is worth another try; waits until it is.
  bool WaitsForTls(int result);

  int fd_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace firn::front
