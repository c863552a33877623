#pragma once

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/seam/blocking_coordinator.h"
#include "tools/firn/command.h"
#include "tools/firn/restore/restore_facts.h"

namespace firn {

// Runs `firn restore`, and `firn init --nobrand_new`.
Result<Output> RestoreWith(BlockingCoordinator& registry, RestoreOptions options);

// Returns the chosen registry, and how it is reached, for a restore command.
RestoreArguments RestorePlace();

}  // namespace firn
