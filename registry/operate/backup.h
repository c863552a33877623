#pragma once

#include <cstddef>
#include <cstdint>
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

// The share of machine ids for leases that a document shows.
struct ShareAsSeen {
  Nonce era{};
  int64_t version = RootSettings::kNotRecorded;  // of the settings' node, within the era
  int64_t share = 0;

  friend auto operator<=>(const ShareAsSeen&, const ShareAsSeen&) = default;
};

// The state of a cluster at one time, for a restore: its settings, the machine ids that no server
// may claim, the bound of each machine id, and the tags with their ledgers. A value.
//
// Servers continue to issue after a backup, so each of its times and ledgers is a lower bound. It
// contains no keys and no credentials; options of a user's own plugins are copied unchanged. `firn
// backup` reads one from the registry; a server composes one from its state.
struct Backup {
  std::string cluster{};  // its path in the registry, for people
  WallMs taken{};         // by the registry's clock
  RootSettings root{};
  std::vector<std::pair<MachineId, WallMs>> bounds{};  // of machine ids that were ever claimed
  bool composed = false;          // from the state of servers, not from the registry. Then also:
  std::vector<WallMs> reached{};  // by ids of unknown machine ids; in order
  bool settings_known = true;     // false: only the uuid and a layout in `root` are valid
  bool tags_known = true;         // false: the cluster may have tags that `tags` lacks
  std::vector<TagNode> tags{};    // by name; without deleted ones
  // Identifies the document. Two readings of one state folder have the same, at different times.
  std::string checksum{};
  // In a merged backup: the begin of the era of its settings, if `root` has another one.
  std::optional<WallMs> root_era_began{};
  // Likewise, if backups differ: definitions besides those in `tags`, and shares besides that in
  // `root`, of which none is known to be earlier. In order. Each of these nodes has the sum of its
  // ledger, or a higher start, as `high`.
  std::vector<TagNode> other_tags{};
  std::vector<ShareAsSeen> other_shares{};

  // Returns the tag, or null.
  const TagNode* Find(std::string_view tag) const;
  // Returns the tag's definitions in `tags` and in `other_tags`.
  std::vector<TagDefinition> DefinitionsOf(std::string_view tag) const;

  friend bool operator==(const Backup&, const Backup&) = default;
};

// The format of a composed backup; that of others is 1.
inline constexpr int64_t kBackupFormat = 2;
inline constexpr size_t kBackupBytesMax = size_t{64} << 20;

// Reads a backup from the registry. kNotFound: there is no cluster. kConflict: the cluster is
// frozen or has lost data; the message names the losses. kUnavailable: the cluster was restored or
// changed during the reading. Blocks.
Result<Backup> ReadBackup(BlockingCoordinator& registry, std::string cluster, WallMs now);

// Returns the file: a JSON document with a format version and a checksum. Each tag and machine id
// has lines of its own, so that a line-by-line diff shows changes.
std::string FormatBackup(const Backup& backup);

// Parses a file with any indentation. kCorrupt: it is damaged, incomplete or not a backup.
// kInvalid: a newer version of Firn has written it.
Result<Backup> ParseBackup(std::string_view text);

// Merges two backups of one cluster. Commutative, associative and idempotent: the order of files
// does not matter. No number of either backup is above that of the result.
//
//  * Ledgers, bounds, floor, claim window and the number of machine ids: the highest.
//  * The time since which ids are issued: the earliest.
//  * Tags, and retired and reserved machine ids: all.
//  * The list of tags is complete if one is, and none is incomplete: that one may be later.
//  * A tag's definition: each form in which ids of it may exist, otherwise each form. In each form,
//    the definition with the highest ledger or start, because these only rise.
//  * The share of machine ids for leases: the last version of each era. No clock shows which era is
//    later, and versions that are not recorded are neither earlier nor later.
//
// Different definitions or shares of equal versions are all kept, for the restore to ask: the
// documents' times show nothing, because copying a folder changes them.
//
// kConflict: the backups are of different clusters or differ in permanent settings.
Result<Backup> MergeBackups(const Backup& a, const Backup& b);
// Returns kConflict if the settings cannot be those of one cluster. Unknown settings
// agree with all.
Status CheckAgree(const Backup& a, const Backup& b);

// Merges what a server knows and what its state folder contained at its start. It has read its
// definitions and settings later, so they replace kept definitions of the same form, and settings
// that contradict them. All else of both is kept, unless `kept` is of another cluster.
Backup AddKept(Backup known, Backup kept);

// Reads a cluster from the state folder of servers, or of programs that embed Firn: the settings of
// the root node, the tags with their ledgers, the highest times of ids, and the bounds of leases.
// Most of these were written in the last minute of a server; all are lower bounds. No server has to
// run.
//
// `uuid`: the cluster; empty: the only one. kNotFound: the folder contains nothing of it.
// kConflict: the folder contains several clusters, which the message names. kCorrupt names a
// damaged file of the cluster; a damaged file of another one is ignored with a warning. Blocks.
Result<Backup> ReadStateDocument(const std::string& folder, const std::string& uuid);

// Returns Backup::checksum of a folder. It identifies this folder on this machine, with any
// contents; a copy of the folder has another one. Empty if the folder is unreadable.
std::string IdentityOf(const std::string& folder);

}  // namespace firn
