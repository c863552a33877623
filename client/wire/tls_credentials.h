#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <openssl/ssl.h>

#include "client/client_options.h"
#include "common/base/status.h"

namespace firn::client {

// OpenSSL's things, as they are freed.
struct FreeTls {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};

// What was read from the files of a TlsContext at one moment, and the sessions that were agreed
// upon with it. Thread-safe.
struct TlsCredentials {
  static Result<std::shared_ptr<TlsCredentials>> Read(const TlsOptions& options);

  // Has the connection resume the session that `server` gave last, if there is one that is good.
  void Resume(const std::string& server, SSL* ssl);
  void Keep(const std::string& server, SSL_SESSION* session);

  std::unique_ptr<SSL_CTX, FreeTls> context{};
  std::string ca{};    // where the authorities came from, for a person
  std::string cert{};  // the same of the own certificate; empty: there is none

 private:
  Status ReadFiles(const TlsOptions& options);

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<SSL_SESSION, FreeTls>> sessions_;  // under mutex_
};

}  // namespace firn::client
