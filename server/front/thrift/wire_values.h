#pragma once

#include "common/base/status.h"
#include "common/id/explain.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/lease_calls.h"
#include "server/front/desk/server_view.h"
#include "server/issue/refusal.h"
#include "server/issue/runs.h"
#include "thrift/gen/firn_types.h"

namespace firn::front {

// Converts Firn's values to the wire contract's, and back. Pure functions.

wire::Refusal ToWire(const Refusal& refusal);
wire::IdFields ToWire(const Explanation& explanation);

// Runs of more than 2^31 - 1 ids become several.
void ToWire(const Runs& runs, std::vector<wire::IdRun>& out);

// `issued`: ids by tag, as the desks have counted them.
wire::ServerStatus ToWire(const ServerReport& report, const Layout& layout, RackSplit split,
                          const std::map<std::string, uint64_t>& issued);

wire::ServerEntry ToWire(const ListedServer& server);

wire::LeaseTerms ToWire(const LeaseGrant& terms);
wire::LeaseRefusal ToWire(const LeaseRefusal& refusal);

// kInvalid if the clock is missing. LeaseCalls checks the rest.
Result<LeaseCall> FromWire(const wire::LeaseAsk& ask);
Result<LeaseCall> FromWire(const wire::LeaseRenewal& renewal);
Result<LeaseCall> FromWire(const wire::LeaseEnd& end);

// kInvalid if a number is negative, because no field of an id is.
Result<ComposeRequest> FromWire(const wire::ComposeRequest& request);

// The refusal of a request that cannot be explained or composed.
Refusal BadRequest(const Status& status);

}  // namespace firn::front
