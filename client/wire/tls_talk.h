#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "client/wire/outcome.h"
#include "common/tls/tls_pump.h"

struct ssl_st;
struct ssl_session_st;

namespace firn::client {

struct TlsCredentials;

// The client's side of the encryption of one connection, by a TlsPump: sessions are resumed, and a
// failure becomes an outcome. (OpenSSL's own writes to a socket would raise SIGPIPE in the
// program.) Used by one thread at a time.
//
// It sends no close_notify: messages have their own lengths, and a forked child, which has a copy
// of this object, must not send anything.
class TlsTalk {
 public:
  using State = TlsPump::State;

  // Created by TlsContext. The server's certificate must be for `name`.
  TlsTalk(std::shared_ptr<TlsCredentials> credentials, std::string server, std::string name);
  ~TlsTalk();
  TlsTalk(const TlsTalk&) = delete;
  TlsTalk& operator=(const TlsTalk&) = delete;

  // As TlsPump's.
  State state() const { return pump_.state(); }
  void Feed(std::string_view bytes) { pump_.Feed(bytes); }
  size_t Read(char* into, size_t size) { return pump_.Read(into, size); }
  void Seal(std::string_view bytes) { pump_.Seal(bytes); }
  std::string& sealed() { return pump_.sealed(); }

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
  // Returns a connection that checks the server's certificate, and resumes a session if it can.
  ssl_st* Prepare();
  std::string Refusal() const;

  const std::shared_ptr<TlsCredentials> credentials_;
  const std::string server_, name_;
  std::string names_;  // names in the refused certificate
  ssl_st* const ssl_;  // the pump's
  TlsPump pump_;
};

}  // namespace firn::client
