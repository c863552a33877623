#pragma once

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// What the registry's own clock shows: the moment at which a write of the clock node, which is made
// when it is lost, was applied.
Result<WallMs> ReadRegistryClock(BlockingCoordinator& registry);

}  // namespace firn
