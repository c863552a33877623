#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/seam/blocking_coordinator.h"
#include "tools/firn/command.h"

namespace firn {

// What `firn restore` does, and `firn init` where nobody says that the cluster is brand new. What
// it goes by comes from the flags; `words` name lost tags, as registry/operate/restore_command.h
// has it.
Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry,
                                 const std::vector<std::string>& words);

// The command that puts right what the audit shows, whole, with these lost tags; `high` is how far
// each may have come.
std::string RestoreCommandFor(const Audit& audit, std::vector<TagDefinition> tags);

// What --workers says; nothing: as many as there are, or all of the layout.
std::optional<uint32_t> ChosenWorkers();

// What --ids_since says; 0: nothing.
Result<WallMs> ChosenIdsSince();

}  // namespace firn
