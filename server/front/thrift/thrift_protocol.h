#pragma once

#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/net/protocol.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

enum class ThriftCoding : bool { kBinary, kCompact };

// The Thrift protocol in frames of one coding: the generated processor with a ThriftService of its
// own. A frame that is too large or malformed closes the connection; an unknown method is answered
// with an error. All parameters must outlive it; one IO thread uses backend and counters. `leases`:
// null if the server grants none.
std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Backend& backend,
                                             DeskCounters& counters, LeaseDesk* leases = nullptr);

}  // namespace firn::front
