#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "common/base/status.h"
#include "server/front/net/front_door.h"
#include "server/front/net/plain_wire.h"
#include "server/front/net/tls_expiry.h"
#include "server/front/net/wire.h"

struct ssl_ctx_st;

namespace boost::asio::ssl {
class context;
}

namespace firn::front {

// A wire with TLS, which completes the handshake before its first read. Takes the socket, which is
// open; `context` is OpenSSL's, and lives on with the wire. Defined in tls_wire.cc.
std::unique_ptr<Wire> MakeTlsWire(StreamSocket socket, ssl_ctx_st* context);

// The TLS side of a listener: TLS 1.2 and 1.3. Thread-safe.
//
// Clients may resume a session for an hour, but neither beyond the next Load, nor beyond the
// certificate that they have shown: then they show it again.
class Tls {
 public:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}
  ~Tls();

  // Reads the files, for new connections. kInvalid names the file at fault and leaves in force what
  // was. To be called once before Wrap.
  Status Load();

  // Load, which also refuses a certificate that has expired or is not valid yet, and client
  // authorities of which none is valid. (A start does not: the wall clock may be wrong, and a
  // server that runs says so.)
  Status Reload();

  // When the certificates in use expire. After Load.
  TlsExpiry expiry() const;

  // A wire that agrees upon encryption before its first read. Takes the socket, which is open.
  std::unique_ptr<Wire> Wrap(StreamSocket socket) const;

 private:
  using Context = boost::asio::ssl::context;

  Status Read(bool must_be_valid);

  const TlsFiles files_;
  mutable std::mutex mutex_;
  std::shared_ptr<Context> context_;  // under mutex_
  TlsExpiry expiry_;                  // under mutex_
};

}  // namespace firn::front
