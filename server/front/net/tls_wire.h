#pragma once

#include <memory>

#include "server/front/net/plain_wire.h"
#include "server/front/net/wire.h"

struct ssl_ctx_st;

namespace firn::front {

// TCP with TLS over it, which agrees upon encryption before its first read. Takes the socket, which
// is open; `context` is OpenSSL's, and lives on with the wire.
std::unique_ptr<Wire> MakeTlsWire(TcpSocket socket, ssl_ctx_st* context);

}  // namespace firn::front
