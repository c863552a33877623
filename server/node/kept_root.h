#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/root_settings.h"

namespace firn {

// Reads what the state folder contains; logs why an existing file of the root node's settings,
// <stem>.<uuid>.root, is unusable. `stem`: the folder and the first part of the files' names.
// Blocks.
KeptCluster ReadKeptCluster(const std::string& stem, const std::string& uuid);

// kNotFound, or why the file cannot be used.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file; the settings name the cluster. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

// Returns the restore command of cluster `uuid`, from the state folder alone. `words` contains the
// registry and whatever else is known, which the folder's settings replace.
std::string CommandFromFolder(const std::string& stem, const std::string& uuid,
                              RestoreArguments words, WallMs now);

}  // namespace firn
