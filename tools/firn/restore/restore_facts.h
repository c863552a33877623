#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore/restore_options.h"

namespace firn {

// Parses the flags and the answers of --set, and reads --from.
Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& answers);

// Returns the answers of --set.
std::vector<std::string> AnswersOnCommandLine();

// Returns the arguments that select the registry and its credentials, for a printed restore
// command.
RestoreArguments RestorePlace();

}  // namespace firn
