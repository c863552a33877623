#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/client_options.h"
#include "client/wire/tls_talk.h"
#include "common/base/status.h"

namespace firn::client {

// With what a client speaks TLS: the authorities that it believes, the certificate that it shows,
// the sessions that it may resume. Thread-safe.
//
//  1. The files are looked at whenever a connection begins, and read when one of them is another
//     than before. What cannot be read, or does not fit together, leaves in use what was: of three
//     files that are replaced, two are for a moment of different times.
//  2. A session is resumed at the server that gave it, until the files change or the certificate
//     that the server had shown ends.
class TlsContext {
 public:
  explicit TlsContext(TlsOptions options) : options_(std::move(options)) {}

  // Reads the files, if they are not as they were. kInvalid, kNotFound or kDenied names the file at
  // fault; nothing that is in use has changed then.
  Status Load();

  // Encryption for a new connection to `server`, as lists have it, whose certificate must be for
  // its `host`, unless the options name another. Fails as Load, when nothing is in use yet.
  Result<std::unique_ptr<TlsTalk>> Begin(const std::string& server, const std::string& host);

 private:
  std::string Stamp() const;

  const TlsOptions options_;
  std::mutex mutex_;
  std::string stamp_;                       // of the files in use; this and the next under mutex_
  std::shared_ptr<TlsCredentials> in_use_;  // null: none was loaded
};

}  // namespace firn::client
