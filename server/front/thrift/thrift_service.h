#pragma once

#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/thrift/thrift_protocol.h"

namespace firn::front {

// The wire contract on one IO thread: Twitter's methods and Firn's, over the issuer. Every "no" is
// a declared refusal. A call that has to wait leaves its state in the attempt and throws NoIdsYet.
// `backend` and `counters` must outlive it.
std::unique_ptr<ThriftHandler> MakeThriftService(const Backend& backend, DeskCounters& counters);

}  // namespace firn::front
