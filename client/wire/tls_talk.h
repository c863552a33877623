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

// The encryption of one connection, from this end. It moves no bytes itself: whoever has the socket
// gives it what has come, and sends what it has sealed. (OpenSSL's own writes to a socket would
// raise SIGPIPE in the program that this is a part of.) Used by one thread at a time.
//
// It says no goodbye: what is said on a connection has lengths of its own, and a forked child, who
// has a copy of all this, must say nothing at all.
class TlsTalk {
 public:
  enum class State : uint8_t {
    kAgreeing,  // shakes hands; nothing can be said yet
    kAgreed,
    kFailed  // FailureOf says why
  };

  // To be made by TlsContext. `name` is what the server's certificate must be for.
  TlsTalk(std::shared_ptr<TlsCredentials> credentials, std::string server, std::string name);
  ~TlsTalk();
  TlsTalk(const TlsTalk&) = delete;
  TlsTalk& operator=(const TlsTalk&) = delete;

  State state() const { return state_; }

  // Takes bytes that came from the server, and shakes hands as far as they allow.
  void Came(std::string_view bytes);
  // Up to `size` bytes of what the server said; 0 when there is no more for now, or it failed.
  size_t Read(char* into, size_t size);
  // Encrypts; only when agreed.
  void Seal(std::string_view bytes);

  // What is to be sent, in this order. Whoever sends takes it out.
  std::string& sealed() { return sealed_; }

  // Whether what was agreed upon goes on with an earlier connection's session.
  bool resumed() const;

  // How asking ended for a connection that failed here, or that the server ended while hands were
  // shaken: `closed` says how, and may be empty.
  Outcome FailureOf(std::string_view closed) const;

  // --- told by OpenSSL ------------------------------------------------------------------------

  // The server gives a session, which this takes, to resume by.
  void KeepSession(ssl_session_st* session);
  // The certificate that is refused is for these.
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
  std::string why_;    // it failed
  std::string names_;  // that the refused certificate is for
};

}  // namespace firn::client
