#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/operate/root_settings.h"

namespace firn {

// Reads the copy of the root node's settings, <stem>.<uuid>.root in the state folder. kNotFound, or
// why the file cannot be used. `stem`: the folder and the first part of the files' names. Blocks.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file; the settings name the cluster. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

}  // namespace firn
