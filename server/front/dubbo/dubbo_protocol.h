#pragma once

#include <atomic>
#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/net/counters.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// In which order Vesta's makeId takes its last arguments, which are longs in either order.
enum class VestaOrder : uint8_t { kTimeFirst, kMachineFirst };

// What the Dubbo connections of all IO threads have in common. Any thread.
struct DubboState {
  VestaOrder make_id_order = VestaOrder::kTimeFirst;
  // Consumers are told to call other servers: with the next answer on each connection.
  std::atomic<bool> read_only{false};
};

// Counts of one IO thread; written by that thread, read by any.
struct DubboCounters {
  Count one_way;  // calls without an answer, which took no id
  Count heartbeats;
};

// The Dubbo protocol with Hessian 2, and the two services that it exports: io.firn.IdService and
// Vesta's. A message that is too large, or that is no request, closes the connection.
// All must outlive it; one IO thread uses `desk` (of Method::kDubbo) and `counters`.
std::unique_ptr<Protocol> MakeDubboProtocol(const Backend& backend, IdDesk& desk,
                                            const DubboState& state, DubboCounters& counters);

}  // namespace firn::front
