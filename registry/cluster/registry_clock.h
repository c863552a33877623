#pragma once

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Returns the registry's time: that of a write of the clock node, which is created if it is
// missing.
Result<WallMs> ReadRegistryClock(BlockingCoordinator& registry);

}  // namespace firn
