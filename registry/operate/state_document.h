#pragma once

#include <string>

#include "common/base/status.h"
#include "registry/operate/backup.h"

namespace firn {

// Reads what the state folder of servers, or of programs that embed Firn, contains of a cluster:
// the settings of the root node, the tags with their ledgers, how far ids have come, and the bounds
// of leases. Most of it is at most a minute old, and all of it a lower bound. The folder itself is
// the document: nothing else is kept for a restore, and no server has to run.
//
// `uuid`: the cluster; empty: the only one. kNotFound: the folder has nothing of it. kConflict:
// several clusters, which the message names. kCorrupt names the damaged file. Blocks.
Result<Backup> ReadStateDocument(const std::string& folder, const std::string& uuid);

// Returns Backup::checksum of a folder, which names it whatever it contains: this folder on this
// machine, not a copy of it. Empty if it cannot be read.
std::string IdentityOf(const std::string& folder);

}  // namespace firn
