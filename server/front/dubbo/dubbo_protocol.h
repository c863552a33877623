#pragma once

#include <atomic>
#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/net/counters.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// The order of the last arguments of Vesta's makeId, which are longs in both orders.
enum class VestaOrder : uint8_t { kTimeFirst, kMachineFirst };

// State that the Dubbo connections of all IO threads share. Any thread.
struct DubboState {
  VestaOrder make_id_order = VestaOrder::kTimeFirst;
  // Consumers are to use other servers; announced behind the next answer on each connection.
  std::atomic<bool> read_only{false};
};

// Counters of one IO thread; written by that thread, read by any.
struct DubboCounters {
  Count one_way;  // calls that expect no answer, and take no id
  Count heartbeats;
};

// The Dubbo protocol with Hessian 2, and the two services that it exports: io.firn.IdService and
// Vesta's. A message that is too large, or is not a request, closes the connection. All parameters
// must outlive it; one IO thread uses `desk` (with Method::kDubbo) and `counters`.
std::unique_ptr<Protocol> MakeDubboProtocol(const Backend& backend, IdDesk& desk,
                                            const DubboState& state, DubboCounters& counters);

}  // namespace firn::front
