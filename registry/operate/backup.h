#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
// lower bound. It contains no keys and no credentials; options of a user's own plugins are copied
// as they are. `firn backup` makes one of the whole registry, and a server of what it knows.
struct Backup {
  std::string cluster{};  // its path in the registry, for people
  WallMs taken{};         // by the registry's clock
  RootSettings root{};
  std::vector<std::pair<MachineId, WallMs>> bounds{};  // of machine ids that were ever claimed
  // Composed of what servers know, not read from the whole registry. Then also:
  bool composed = false;
  std::vector<WallMs> reached{};  // by ids of machine ids that are not known; in order
  bool settings_known = true;   // false: of `root`, the uuid counts, and the layout if there is one
  bool tags_known = true;       // false: the cluster may have tags that `tags` lacks
  std::vector<TagNode> tags{};  // by name; without deleted ones
  // Which document it is: two readings of one state folder are the same one, and have other times.
  std::string checksum{};
  // Of a merged backup: when the era of its settings began, if `root` has another time; and when
  // the settings and the tags were taken, if that is not `taken`.
  std::optional<WallMs> root_era_began{};
  WallMs root_taken{};
  std::map<std::string, WallMs> tags_taken{};

  // Returns the tag, or null.
  const TagNode* Find(std::string_view tag) const;

  friend bool operator==(const Backup&, const Backup&) = default;
};

// Of a composed backup; others have format 1, which earlier versions read, too.
inline constexpr int64_t kBackupFormat = 2;
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
//  * A tag's other settings: those with the highest ledger, because a ledger only rises. The
//  cluster's:
//    those of the last era, and within it of the last version. The times at which documents were
//    taken decide only between equal ones: copying a folder changes them.
//
// kConflict: they are of different clusters, differ in what is fixed for a cluster's life, or a tag
// has two forms in which ids may exist.
Result<Backup> MergeBackups(const Backup& a, const Backup& b);
// The same without tags: whether both can be of one cluster, as far as they know it.
Status CheckAgree(const Backup& a, const Backup& b);

// Reads what the state folder of servers, or of programs that embed Firn, contains of a cluster:
// the settings of the root node, the tags with their ledgers, how far ids have come, and the bounds
// of leases. Most of it is at most a minute old, and all of it a lower bound. The folder itself is
// the document: nothing else is kept for a restore, and no server has to run.
//
// `uuid`: the cluster; empty: the only one. kNotFound: the folder has nothing of it. kConflict:
// several clusters, which the message names. kCorrupt names a damaged file of the cluster; a file
// that may be of another one is ignored with a warning. Blocks.
Result<Backup> ReadStateDocument(const std::string& folder, const std::string& uuid);

// Returns Backup::checksum of a folder, which names it whatever it contains: this folder on this
// machine, not a copy of it. Empty if it cannot be read.
std::string IdentityOf(const std::string& folder);

}  // namespace firn
