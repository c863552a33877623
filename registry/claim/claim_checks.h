#pragma once

#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "registry/claim/believed_clock.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/cluster/records.h"

namespace firn {

// What a claim asks of the clocks and of the cluster before it takes a slot. Pure functions: the
// fault as a sentence, empty when there is none.

// `asked` and `told`: our clocks before and after the registry's own showed `registry` (0: it has
// none). The wall clock may have been set meanwhile: it is the later reading that has to be right.
std::string ClockFault(const ClaimOptions& options, Now asked, WallMs registry, Now told);

// A length of time in the unit that suits it: "35 s", "20 h", "300 days".
std::string DurationText(Milliseconds length);

// While the registry's clock is not believed: by how much it is off, as a sentence.
std::string ClockTrouble(const BelievedClock& registry, BootMs now);

// Hands what was heard of the registry's clock to the hooks.
void TellClock(const BelievedClock& registry, Now now, const ClaimHooks& hooks);

// `uuid`: of the cluster that this process belongs to; empty where it is not known.
std::string MetaFault(const ClaimOptions& options, const Result<ClusterMeta>& meta, int64_t version,
                      const std::string& uuid);

}  // namespace firn
