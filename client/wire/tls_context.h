#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/client_options.h"
#include "client/wire/tls_talk.h"
#include "common/base/status.h"

namespace firn::client {

// The client's TLS state: the authorities that it trusts, its certificate, and the sessions that it
// can resume. Thread-safe.
//
//  1. Each new connection checks whether a file has changed, and then reads the files. If they are
//     unreadable or do not match, the previous ones stay in use: while three files are being
//     replaced, they do not match for a moment.
//  2. A session is resumed with its server, until the files change or the certificate that the
//     server presented expires.
class TlsContext {
 public:
  explicit TlsContext(TlsOptions options) : options_(std::move(options)) {}

  // Reads the files if they have changed. kInvalid, kNotFound or kDenied names the faulty file;
  // then the state does not change.
  Status Load();

  // Returns the encryption of a new connection to `server`, an address in a list. Its certificate
  // must be for `host`, unless the options set a name. Fails as Load if no files were loaded yet.
  Result<std::unique_ptr<TlsTalk>> Begin(const std::string& server, const std::string& host);

 private:
  std::string Stamp() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::string stamp_;                       // of the loaded files; this and the next under mutex_
  std::shared_ptr<TlsCredentials> in_use_;  // null: none was loaded
};

}  // namespace firn::client
