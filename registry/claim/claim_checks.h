#pragma once

#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "registry/claim/believed_clock.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/cluster/records.h"

namespace firn {

// Preconditions of a claim: the clocks and the cluster. Pure functions that return the fault as a
// sentence, empty if there is none.

// `asked` and `told` are the local clocks before and after the registry's clock was read as
// `registry` (0: it has no clock). If the wall clock was set in between, the later reading counts.
std::string ClockFault(const ClaimOptions& options, Now asked, WallMs registry, Now told);

// The fault of a server that cannot read the bounds of its earlier leases begins with this. It
// lasts until an operator acts (ClaimOptions::kept_fault).
inline constexpr std::string_view kKeptFault = "cannot read the bounds of earlier leases: ";

// A length of time in the unit that suits it: "35 s", "20 h", "300 days".
std::string DurationText(Milliseconds length);

// Returns by how much the registry's clock is wrong, as a sentence; empty while it is believed.
std::string ClockTrouble(const BelievedClock& registry, BootMs now);

// Passes the last reading of the registry's clock, and the believed time, to the hooks.
void ReportClock(const BelievedClock& registry, Now now, const ClaimHooks& hooks);

// `uuid` is the cluster that this process belongs to; empty if it is unknown.
std::string MetaFault(const ClaimOptions& options, const Result<ClusterMeta>& meta, int64_t version,
                      const std::string& uuid);

}  // namespace firn
