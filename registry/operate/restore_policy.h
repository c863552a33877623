#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "registry/servers/provider.h"

namespace firn {

// The decisions of a restore: which facts suffice, and whether a restore would change anything.
// Pure; restore.h does the work.

// A tag on the command line of `firn restore`: its `start` and, if `defined`, its definition.
struct GivenTag {
  TagDefinition tag;
  bool defined = true;
};

// What is known of the numbers of tags besides the registry.
struct LedgerFacts {
  std::vector<ProviderReport> reports{};  // of running servers, and of the operator (--tag_high)
  std::optional<Backup> backup{};         // its ledgers are lower bounds
  bool replaced = false;  // the registry's tags are those of a new cluster, made by mistake
  int64_t wanted_gap = 0;
  std::map<std::string, int64_t> starts{};  // the numbers of the arguments
};

// What the flags, arguments and the backup of `firn restore` say of tags.
struct RestoreCall {
  std::vector<GivenTag> tags{};
  ProviderReport highs{};  // --tag_high, in the form of a server's report
  LedgerFacts ledgers{};
};

// Returns the highest ledger of the tag that the reports name, or nullopt if none does. A report
// without room for every tag gives one value for all others: the highest ledger among them.
std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports);

// The same, or the backup's ledger if that is higher.
std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts);

// The same, or the tag's own ledger or start if that is higher.
int64_t HighestKnown(const TagDefinition& tag, const LedgerFacts& facts);

// Returns the ledger that a tag gets whose highest known value is `known`: LiftTo, or `known` if no
// number would be left above the gap and the operator gives the tag's next number, from `known` on.
int64_t LiftedTo(const TagDefinition& tag, int64_t known, const LedgerFacts& facts,
                 std::optional<WallMs> now = {});

// Returns whether the tag, which the registry shows as deleted, existed again afterwards. A tag is
// deleted only before its first number, so numbers in a report or in the backup are later.
bool ExistedAgain(const std::string& deleted_tag, const LedgerFacts& facts);

// Adds the backup's settings, machine ids and bounds where the facts contain no others. A cluster
// that still has more machine ids than the backup keeps them, unless it is replaced.
void AddBackup(const Backup& backup, const Audit& audit, RestoreFacts& facts);

// Returns whether the registry's tags and records are those of a cluster that was never used, and
// that this restore or an unfinished one replaces.
bool ReplacesUnused(const Audit& audit, const RestoreFacts& facts);

// Returns kConflict if an unfinished restore used something that this one lacks, and that the
// registry does not remember: a document, or too many arguments. The message contains the command
// to repeat, at `place`.
Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place);

// Returns kConflict if the restore lacks a number that only an operator can provide. The message
// contains the command to run instead, which repeats `ran`: the registry, and what else was said.
//
// * A server reports a lost tag that neither the arguments nor the backup contain: it would freeze
//   the cluster again.
// * The cluster is frozen because a ledger went back, and nothing says how far that ledger was: no
//   gap is known to suffice.
// * The gap would leave a tag no numbers.
Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran);
// The first of these conditions alone.
Status CheckLostTags(const Audit& audit, const RestoreCall& call, RestoreArguments ran);

// Returns whether the cluster has just been restored, with a floor above all that is known now.
// Says nothing about tags: see TagsCover.
bool FloorCovers(const Audit& audit, const RestoreFacts& facts);

// Returns whether every tag of the arguments and of the backup exists, with the same form and a
// ledger above the number that they name; a tag of the backup may also have been deleted, unless it
// ExistedAgain.
bool TagsCover(const TagListing& listing, const RestoreCall& call);

}  // namespace firn
