#pragma once

#include <cstdint>
#include <optional>

#include "common/status.h"
#include "registry/blocking_coordinator.h"
#include "tools/firn/command.h"

namespace firn {

// What `firn restore` does, and `firn init` where nobody says that the cluster is brand new. What
// it goes by comes from the flags.
Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry);

// What --workers says; nothing: as many as there are, or all of the layout.
std::optional<uint32_t> ChosenWorkers();

}  // namespace firn
