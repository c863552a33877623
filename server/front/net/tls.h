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

// Returns a wire with TLS, which completes the handshake before its first read. Takes the socket,
// which is open. The wire shares ownership of `context`, OpenSSL's SSL_CTX. Defined in tls_wire.cc.
std::unique_ptr<Wire> MakeTlsWire(StreamSocket socket, ssl_ctx_st* context);

// The TLS side of a listener: TLS 1.2 and 1.3. Thread-safe.
//
// A client may resume a session for an hour. After a Load, or once its certificate has expired, it
// must present its certificate again.
class Tls {
 public:
  explicit Tls(TlsFiles files) : files_(std::move(files)) {}
  ~Tls();

  // Reads the files, for new connections. kInvalid names the invalid file; the earlier ones then
  // stay in use. Must be called before Wrap.
  Status Load();

  // Like Load, but also refuses a certificate that has expired or is not valid yet, and a file of
  // client authorities none of which is valid. (Load accepts them at the start: the wall clock may
  // be wrong, and the running server reports it.)
  Status Reload();

  // When the certificates in use expire. After Load.
  TlsExpiry expiry() const;

  // Returns a wire with TLS. Takes the socket, which is open.
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
