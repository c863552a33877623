#pragma once

#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/records.h"

namespace firn {

// What a claim asks of the clocks and of the cluster before it takes a slot. Pure functions: the
// fault as a sentence, empty when there is none.

// `asked` and `told`: our clocks before and after the registry's own showed `registry` (0: it has
// none). The wall clock may have been set meanwhile: it is the later reading that has to be right.
std::string ClockFault(const ClaimOptions& options, Now asked, WallMs registry, Now told);

// `uuid`: of the cluster that this process belongs to; empty where it is not known.
std::string MetaFault(const ClaimOptions& options, const Result<ClusterMeta>& meta, int64_t version,
                      const std::string& uuid);

}  // namespace firn
