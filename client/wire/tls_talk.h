#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client/wire/outcome.h"

struct ssl_st;
struct ssl_session_st;

namespace firn::client {

struct TlsCredentials;

// The client's side of the encryption of one connection. It does no I/O itself: the socket's owner
// passes it received bytes, and sends the bytes that it has encrypted. (OpenSSL's own writes to a
// socket would raise SIGPIPE in the program.) Used by one thread at a time.
//
// It sends no close_notify: messages have their own lengths, and a forked child, which has a copy
// of this object, must not send anything.
class TlsTalk {
 public:
  enum class State : uint8_t {
    kAgreeing,  // handshake in progress; no data can be sent yet
    kAgreed,
    kFailed  // FailureOf returns the reason
  };

  // Created by TlsContext. The server's certificate must be for `name`.
  TlsTalk(std::shared_ptr<TlsCredentials> credentials, std::string server, std::string name);
  ~TlsTalk();
  TlsTalk(const TlsTalk&) = delete;
  TlsTalk& operator=(const TlsTalk&) = delete;

  State state() const { return state_; }

  // Takes bytes from the server, and continues the handshake.
  void Feed(std::string_view bytes);
  // Returns up to `size` decrypted bytes; 0 if there are no more for now, or after a failure.
  size_t Read(char* into, size_t size);
  // Encrypts; only after the handshake.
  void Seal(std::string_view bytes);

  // The bytes to send. The sender removes them.
  std::string& sealed() { return sealed_; }

  // Returns whether the connection resumed an earlier session.
  bool resumed() const;

  // Returns the outcome for a connection that failed here, or that the server closed during the
  // handshake; `closed` describes how, and may be empty.
  Outcome FailureOf(std::string_view closed) const;

  // --- called by OpenSSL ----------------------------------------------------------------------

  // Takes ownership of a session that the server issued, for resumption.
  void KeepSession(ssl_session_st* session);
  // Sets the names in the refused certificate.
  void KeepNames(std::string names) { names_ = std::move(names); }

 private:
  void Agree();
  void Fail(int result);
  std::string Refusal() const;
  void Drain();

  const std::shared_ptr<TlsCredentials> credentials_;
  const std::string server_, name_;
  ssl_st* const ssl_;
  State state_ = State::kAgreeing;
  std::string sealed_;
  std::string why_;    // reason of the failure
  std::string names_;  // names in the refused certificate
};

}  // namespace firn::client
