#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/tag_node.h"
#include "registry/operate/root_settings.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Everything that a restore needs of a cluster, at one time: its settings, the machine ids that no
// server may claim, how far each machine id is granted, and the tags with their ledgers. A value.
//
// A backup is older than what servers have issued since, so each of its times and ledgers is a
// lower bound. It contains no keys and no credentials.
struct Backup {
  std::string cluster{};  // its path in the registry, for people
  WallMs taken{};         // by the registry's clock
  RootSettings root{};
  std::vector<std::pair<MachineId, WallMs>> bounds{};  // of machine ids that were ever claimed
  std::vector<TagNode> tags{};                         // by name; without deleted ones
  std::string checksum{};                              // of the file that it was read from
  // When the settings and the tags of a merged backup were taken, if that is not `taken`.
  WallMs root_taken{};
  std::map<std::string, WallMs> tags_taken{};

  // Returns the tag, or null.
  const TagNode* Find(std::string_view tag) const;

  friend bool operator==(const Backup&, const Backup&) = default;
};

inline constexpr int64_t kBackupFormat = 1;
inline constexpr size_t kBackupBytesMax = size_t{64} << 20;

// Reads a backup from the registry. kNotFound: there is no cluster. kConflict: the cluster is
// frozen or has lost data, and the message names what is missing. kUnavailable: it was restored or
// changed during the reading. Blocks.
Result<Backup> ReadBackup(BlockingCoordinator& registry, std::string cluster, WallMs now);

// The file: one JSON document with a format version and a checksum, one tag or machine id a line
// group, so that two backups can be compared line by line.
std::string FormatBackup(const Backup& backup);

// Parses a file, however it is indented. kCorrupt: it is damaged, incomplete or not a backup.
// kInvalid: a newer version of Firn has written it.
Result<Backup> ParseBackup(std::string_view text);

// Returns a backup that knows what both know. Commutative, associative and idempotent, so the order
// of files does not matter, and no number in one of them is above that of the result.
//
//  * Ledgers, bounds, floor, claim window and the number of machine ids: the highest.
//  * The time since which ids are issued: the earliest.
//  * Tags, and retired and reserved machine ids: all.
//  * A tag's form: that of the backup in which ids of it may exist.
//  * Other settings: those that were taken last.
//
// kConflict: they are of different clusters, or a tag has two forms in which ids may exist.
Result<Backup> MergeBackups(const Backup& a, const Backup& b);

}  // namespace firn
