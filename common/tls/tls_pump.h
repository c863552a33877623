#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/status.h"

struct ssl_ctx_st;
struct ssl_st;

namespace firn {

// The certificates that a TLS client accepts, and its own. Files are PEM.
struct TlsTrust {
  std::string ca_file{};    // empty: the server's certificate is not checked
  std::string name{};       // host name or IP address the certificate must have; empty: any
  std::string cert_file{};  // empty: none is presented
  std::string key_file{};
};

// The client's side of one TLS connection, without I/O: its owner passes it the bytes that it has
// received, and sends the bytes that it has encrypted. Owned by one thread.
class TlsPump {
 public:
  enum class State : uint8_t {
    kAgreeing,  // handshake in progress; no data can be sent yet
    kAgreed,
    kFailed,  // why() is the reason
  };

  // Reads the files, as ReadFiles does.
  static Result<std::unique_ptr<TlsPump>> Begin(const TlsTrust& trust);

  // Takes ownership of `ssl`, whose context and checks the caller has set up, and begins the
  // handshake. `explain` returns the reason of a failure, from OpenSSL's state right after it; it
  // is called on the thread of the call that failed, also by this constructor.
  TlsPump(ssl_st* ssl, std::function<std::string()> explain);
  ~TlsPump();
  TlsPump(const TlsPump&) = delete;
  TlsPump& operator=(const TlsPump&) = delete;

  State state() const { return state_; }
  const std::string& why() const { return why_; }

  // Takes bytes from the server, and continues the handshake.
  void Feed(std::string_view bytes);
  // Returns up to `size` decrypted bytes; 0 if there are no more for now, or after a failure.
  size_t Read(char* into, size_t size);
  // Encrypts; only after the handshake.
  void Seal(std::string_view bytes);

  // The bytes to send. The sender removes them.
  std::string& sealed() { return sealed_; }

  // Makes `context` use the files. kInvalid, kNotFound or kDenied names the faulty one.
  static Status ReadFiles(const TlsTrust& trust, ssl_ctx_st& context);
  // Makes the certificate's check include the name or IP address, and sends a name to the server.
  static void RequireName(ssl_st* ssl, const std::string& name);

 private:
  void Agree();
  void Fail(int result);
  void Drain();

  ssl_st* const ssl_;
  const std::function<std::string()> explain_;
  State state_ = State::kAgreeing;
  std::string why_;
  std::string sealed_;
};

}  // namespace firn
