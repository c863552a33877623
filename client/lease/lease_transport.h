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
// A grant request goes to any server. If it is repeated, it goes to the server that may have
// granted it already. Other requests go to the lease's server. A server that answers 421 names that
// server.
class LeaseTransport {
 public:
  virtual ~LeaseTransport() = default;

  // Sends `ask`, and passes its outcome with `number` to `replies`: at most once, on any thread,
  // never inside this call. If there is no outcome, the lessee sends the request again with the
  // same number.
  virtual void Send(uint64_t number, const LeaseRequest& ask,
                    std::shared_ptr<LeaseOutcomes> replies) = 0;
};

}  // namespace firn
