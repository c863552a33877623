#pragma once

#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/net/protocol.h"

namespace firn::front {

enum class ThriftCoding : bool { kBinary, kCompact };

// The wire contract in frames of one coding, processed by the generated code and answered by a
// ThriftService of its own. A frame that is too large, or that the coding cannot read, closes the
// connection; an unknown method is answered with an error.
// `backend` and `counters` must outlive it; one IO thread uses both.
std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Backend& backend,
                                             DeskCounters& counters);

}  // namespace firn::front
