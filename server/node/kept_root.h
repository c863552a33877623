#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/operate/root_settings.h"

namespace firn {

// Reads the copy of the root node's settings, <stem>.<uuid>.root in the state folder. kNotFound if
// there is no file; other errors if it is unusable. `stem` is the common beginning of the files'
// paths. Blocks.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file of the cluster that `settings` names. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

}  // namespace firn
