#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

#include "client/client_options.h"
#include "common/base/status.h"

namespace firn::client {

// Frees OpenSSL's objects.
struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};

// The content of a TlsContext's files at one time, and the sessions that were negotiated with
// it. Thread-safe.
struct TlsCredentials {
  static Result<std::shared_ptr<TlsCredentials>> Read(const TlsOptions& options);

  // Makes the connection resume the last session of `server`, if there is a valid one.
  void Resume(const std::string& server, SSL* ssl);
  void Keep(const std::string& server, SSL_SESSION* session);

  std::unique_ptr<SSL_CTX, FreeTls> context{};
  std::string ca{};    // source of the authorities, for messages
  std::string cert{};  // source of the client's certificate; empty: none

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SSL_SESSION, FreeTls>> sessions_;  // under mutex_
};

}  // namespace firn::client
