#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/root_settings.h"
#include "server/node/kept_tags.h"

namespace firn {

// What a state folder contains about one cluster. Only printed commands use it: no claim and no id
// depends on it.
struct KeptCluster {
  std::optional<RootSettings> root{};           // <stem>.<uuid>.root
  std::map<std::string, TagDefinition> tags{};  // with the ledgers as they were saved last
  Bounds last{};  // the highest id time of each machine id that the server held last
};

// Reads what there is; logs why an existing file of the root node's settings is unusable. `stem`:
// the folder and the first part of the files' names. Blocks.
KeptCluster ReadKeptCluster(const std::string& stem, const std::string& uuid);

// kNotFound, or why the file cannot be used.
Result<RootSettings> ReadKeptRoot(const std::string& stem, const std::string& uuid);

// Replaces the file; the settings name the cluster. Blocks.
Status WriteKeptRoot(const std::string& stem, const RootSettings& settings);

// Adds to `known` what a server without a claim cannot know otherwise: the bounds. `root` is the
// newest known; null: none. A tag that `known` contains gets the saved ledger if that is higher.
// Other tags are added if `tags_lost`.
void AddKept(const KeptCluster& kept, const RootSettings* root, bool tags_lost,
             KnownCluster& known);

// Returns the restore command of cluster `uuid`, from the state folder alone. `words` contains the
// registry and whatever else is known, which the folder's settings replace.
std::string CommandFromFolder(const std::string& stem, const std::string& uuid,
                              RestoreArguments words, WallMs now);

}  // namespace firn
