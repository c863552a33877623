#pragma once

#include <cstdint>
#include <memory>

#include "client/lease/lease_request.h"

namespace firn {

// Receives outcomes of requests. Thread-safe.
class LeaseOutcomes {
 public:
  virtual ~LeaseOutcomes() = default;
  virtual void Post(uint64_t number, LeaseOutcome reply) = 0;
};

// Sends a lessee's requests to servers.
//
// A grant goes to any server, and a repeated one to the server that may have granted the first.
// Other requests go to the lease's server: a server that answers 421 names the right one.
class LeaseTransport {
 public:
  virtual ~LeaseTransport() = default;

  // Sends `ask`, and passes its outcome with `number` to `replies`: at most once, on any thread,
  // never inside this call. The lessee sends again what got no outcome, under the same number.
  virtual void Send(uint64_t number, const LeaseRequest& ask,
                    std::shared_ptr<LeaseOutcomes> replies) = 0;
};

}  // namespace firn
