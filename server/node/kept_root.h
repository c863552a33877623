#pragma once

#include <map>
#include <string>

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/root_settings.h"
#include "server/node/kept_tags.h"

namespace firn {

// The settings of the root node in a state folder, one file for each cluster: <stem>.<uuid>.root.
// Only printed commands use them: no claim and no id depends on this file.

// kNotFound, or why it cannot be used. `stem`: the folder and the first part of the file's name.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file; the settings name the cluster. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

// The restore command of cluster `uuid`, from the state folder alone; `words` has the registry and
// what is known otherwise, which the folder's settings replace.
std::string CommandFromFolder(const std::string& stem, const std::string& uuid, RestoreWords words);

// The definitions in the state folder; empty where there are none.
std::map<std::string, TagDefinition> ReadKeptDefinitions(const std::string& stem,
                                                         const std::string& uuid);

}  // namespace firn
