#pragma once

#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/net/protocol.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

enum class ThriftCoding : bool { kBinary, kCompact };

// The wire contract in frames of one coding, processed by the generated code and answered by a
// ThriftService of its own. A frame that is too large, or that the coding cannot read, closes the
// connection; an unknown method is answered with an error.
// All must outlive it; one IO thread uses backend and counters. `leases`: null if the server grants
// none.
std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Backend& backend,
                                             DeskCounters& counters, LeaseDesk* leases = nullptr);

}  // namespace firn::front
