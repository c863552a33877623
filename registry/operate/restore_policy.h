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

// The decisions of a restore: which facts suffice, what it asks, and whether it would change
// anything.
// Pure; restore.h does the work.

// What is known of the numbers of tags besides the registry.
struct LedgerFacts {
  std::vector<ProviderReport> reports{};  // of running servers, and of the operator
  std::vector<Backup> documents{};        // each by itself
  std::optional<Backup> backup{};         // all of them; its ledgers are lower bounds
  bool replaced = false;  // the registry's tags are those of a new cluster, made by mistake
  int64_t wanted_gap = 0;
  std::map<std::string, int64_t> starts{};  // the next numbers that the operator gives
  std::string plan{};                       // RestoreMemory::plan; empty: nothing was changed yet
  std::map<std::string, int64_t> made{};    // tags that the plan has made: see MadeTags

  // Returns the tag as the documents together know it, or null.
  const TagNode* Saved(const std::string& tag) const {
    return backup ? backup->Find(tag) : nullptr;
  }
  // Whether a document of a server, not of the whole registry, contains the tag in this form.
  bool ServersKnow(const TagDefinition& tag) const;
};

// What the operator and the documents say.
struct RestoreCall {
  RestoreAnswers answers{};
  LedgerFacts ledgers{};
  bool is_lost = false;  // the cluster is re-created, of which a document or a flag names the uuid
};

// Returns the highest ledger of the tag that the reports name, or nullopt if none does. A report
// without room for every tag gives one value for all others: the highest ledger among them.
std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports);

// The same, or the backup's ledger if that is higher.
std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts);

// The same, or the tag's own ledger or start if that is higher. A later run of an unfinished
// restore adds its gap above that of the first: the cluster may have issued numbers in between, and
// the registry may have gone back to the time of the first run.
int64_t HighestKnown(const TagDefinition& tag, const LedgerFacts& facts);

// Returns the ledger that a tag gets whose highest known value is `known`: LiftTo by the largest
// ranges in any document, or `known` if no number would be left above the gap and the operator
// gives the tag's next number, from `known` on.
int64_t LiftedTo(const TagDefinition& tag, int64_t known, const LedgerFacts& facts,
                 std::optional<WallMs> now = {});

// Returns whether the tag, which the registry shows as deleted, existed again afterwards. A tag is
// deleted only before its first number, so numbers in a report or in the backup are later.
bool ExistedAgain(const std::string& deleted_tag, const LedgerFacts& facts);

// Adds what the documents contain of settings, machine ids and bounds where the facts contain no
// others. A cluster that still has more machine ids than the documents keeps them, unless it is
// replaced.
void AddDocuments(const LedgerFacts& ledgers, const Audit& audit, RestoreFacts& facts);

// Returns what an unfinished restore of earlier runs was given as the next numbers of tags, as a
// report: it may have been completed, and servers may have issued these numbers, before the
// registry went back. `plan`: the run that asks, which has issued none of its own.
ProviderReport UsedStarts(const Audit& audit, const std::string& plan);

// Returns whether the registry's tags and records are those of a cluster that was never used, and
// that this restore or an unfinished one replaces.
bool ReplacesUnused(const Audit& audit, const RestoreFacts& facts);

// Returns whether the cluster has just been restored, with a floor above all that is known now.
// Says nothing about tags: see TagsCover.
bool FloorCovers(const Audit& audit, const RestoreFacts& facts);

// Returns whether every tag of the answers and of the backup exists, with the same form and a
// ledger above the number that they name; a tag of the backup may also have been deleted, unless it
// ExistedAgain.
bool TagsCover(const TagListing& listing, const RestoreCall& call);

// What a restore asks before it continues. Pure. Each function returns kConflict if only an
// operator can know something, and the message contains the command to run instead. It repeats
// `ran`: the registry, and what else was said.

// An unfinished restore used something that this run lacks: a document, or an earlier version.
Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place);

// An answer is below what is known, unless an unfinished restore has used it.
Status CheckAnswersRaise(const Audit& audit, const RestoreCall& call);

// What must be known before anything is written, because servers report nothing of it.
//
// * The cluster is lost, and no document contains its settings, its claim window, or its tags.
// * Ids of a tag may exist in two forms: those of the registry, a document, or an answer.
Status CheckSettings(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran);

// What must be known under the frozen root node, with the reports of running servers.
//
// * A server reports a lost tag that neither the answers nor a document define: it would freeze the
//   cluster again.
// * The number of a tag: the cluster is frozen because its ledger went back, and nothing shows the
//   ledger that it had; or the gap would leave the tag no numbers; or a document of a server
//   contains a higher one than all running servers report.
// * How far ids have come: a document contains a holder that does not report, and none contains the
//   floor of the last restore.
// * The forms of tags, as for CheckSettings.
Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, WallMs now,
                         const RestoreArguments& ran);
// The first of these conditions alone.
Status CheckLostTags(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran);

// Returns the bounds ahead of `now` in documents whose holders no running server reports, as far as
// that can be compared: servers report leases without their machine ids.
std::vector<ReportedBound> SilentHolders(const Audit& audit, const std::vector<Backup>& documents,
                                         WallMs now);

}  // namespace firn
