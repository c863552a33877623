#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/root_settings.h"

namespace firn {

// Reads the cached cluster from the state folder. Logs why the file of the root node's settings,
// <stem>.<uuid>.root, is unusable if it exists. `stem`: the folder and the common prefix of the
// file names. Blocks.
KeptCluster ReadKeptCluster(const std::string& stem, const std::string& uuid);

// kNotFound, or why the file is unusable.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file; the settings name the cluster. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

// Returns the restore command of cluster `uuid`, from the state folder alone. `words` contains the
// registry and other known arguments; the folder's settings override them.
std::string CommandFromFolder(const std::string& stem, const std::string& uuid,
                              RestoreArguments words, WallMs now);

}  // namespace firn
