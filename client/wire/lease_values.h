#pragma once

#include "client/lease/lease_request.h"
#include "common/id/layout.h"

namespace firn::wire {
class LeaseAsk;
class LeaseRenewal;
class LeaseEnd;
class LeaseTerms;
class LeaseRefusal;
}  // namespace firn::wire

namespace firn::client {

// Converts to and from the wire contract's types. Pure functions.
wire::LeaseAsk AskToWire(const LeaseRequest& request);
wire::LeaseRenewal RenewalToWire(const LeaseRequest& request);
wire::LeaseEnd EndToWire(const LeaseRequest& request);

// Returns kTerms, or kUnusable if the terms do not describe ids of `layout`, the server's; null: it
// is unknown.
LeaseOutcome FromWire(const wire::LeaseTerms& terms, const Layout* layout);
LeaseOutcome FromWire(const wire::LeaseRefusal& refusal);

}  // namespace firn::client
