#pragma once

#include <memory>
#include <string_view>

#include "client/call/call_plan.h"
#include "client/fleet/fleet.h"
#include "client/socket/socket_pools.h"
#include "client/wire/ask.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/time/clock.h"

namespace firn::client {

// Calls that wait: the calling thread itself connects, sends and receives, on a connection that is
// its own for that time. No other thread is woken, which makes it as fast as a bare socket.
// Thread-safe.
class BlockingCaller {
 public:
  BlockingCaller(Fleet& fleet, SocketPools& pools, const CallPlan::Limits& limits,
                 const Clock& clock, CloseOnFork& fds)
      : fleet_(fleet), pools_(pools), limits_(limits), setting_{clock, fds} {}

  // The answer, or why there is none. It is `now`.
  Result<Reply> Call(const Ask& ask, Micros now, Micros deadline, CallReport* report);

 private:
  // Asks one server, on one connection.
  Outcome Try(const Ask& ask, const CallPlan::Step& step, Reply& reply);
  // By the first of the server's addresses that takes a connection.
  Tried<std::unique_ptr<BlockingSocket>> Connect(Server& server, Micros until);
  // A connection that has been found to lead to this cluster.
  Tried<std::unique_ptr<BlockingConnection>> Open(Server& server, Micros until);

  Fleet& fleet_;
  SocketPools& pools_;
  const CallPlan::Limits limits_;
  const BlockingSocket::Setting setting_;
};

}  // namespace firn::client
