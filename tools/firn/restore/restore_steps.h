#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore_command.h"
#include "registry/seam/blocking_coordinator.h"
#include "tools/firn/command.h"

namespace firn {

// Runs `firn restore`, and `firn init --nobrand_new`, as the flags direct. `words` define lost tags
// in the notation of registry/operate/restore_command.h.
Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry,
                                 const std::vector<std::string>& words);

// Returns the chosen registry, and how it is reached, for a restore command.
RestoreArguments RestorePlace();

// Returns the complete command that repairs what the audit found, with these lost tags. The `high`
// of each tag is its highest ledger that a server reports.
std::string RestoreCommandFor(const Audit& audit, std::vector<TagDefinition> tags);

// Returns --workers, or nullopt for as many as exist, or all of the layout.
std::optional<uint32_t> ChosenWorkers();

// Returns --ids_since, or 0 if it is not set.
Result<WallMs> ChosenIdsSince();

}  // namespace firn
