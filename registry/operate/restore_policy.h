#pragma once

#include <cstddef>
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

// The decisions of a restore: whether its facts suffice, which questions it asks, and whether it
// would change anything. Pure functions; restore.h reads and writes the registry.

// Facts about the numbers of tags, besides the registry.
struct LedgerFacts {
  std::vector<ProviderReport> reports{};  // of running servers, and of the operator
  std::vector<Backup> documents{};        // before they are merged
  std::optional<Backup> backup{};         // the merged documents; its ledgers are lower bounds
  bool replaced = false;  // the tags belong to a new cluster that was created by mistake
  int64_t wanted_gap = 0;
  std::map<std::string, int64_t> starts{};  // the operator's next numbers
  std::string plan{};                       // RestoreMemory::plan; empty: no change yet
  std::map<std::string, int64_t> made{};    // tags that the plan created (MadeTags)

  // Returns the tag in the merged documents, or null.
  const TagNode* Saved(const std::string& tag) const {
    return backup ? backup->Find(tag) : nullptr;
  }
  // Returns whether a server's document, not one of the whole registry, has the tag in this form.
  bool ServersKnow(const TagDefinition& tag) const;
};

// The input of a restore from the operator and the documents.
struct RestoreCall {
  RestoreAnswers answers{};
  LedgerFacts ledgers{};
  bool is_lost = false;  // the cluster that a document or --uuid names is re-created
};

// Returns the highest ledger of the tag in the reports, or nullopt if no report has it. A report
// without room for every tag has one value for all others: the highest ledger among them.
std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports);

// Returns ReportedOf, or the backup's ledger if that is higher.
std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts);

// Returns KnownOf, or the tag's own ledger or start if that is higher. So a later run of an
// unfinished restore adds a second gap. It is needed if the restore was completed, servers issued
// numbers, and the registry then lost these changes.
int64_t HighestKnown(const TagDefinition& tag, const LedgerFacts& facts);

// Returns the new ledger of a tag whose highest known value is `known`: LiftTo by the largest
// ranges in any document. If the gap would leave no number, or a dated tag none of its period, and
// the operator gives a next number at or above `known`, returns `known`.
int64_t LiftedTo(const TagDefinition& tag, int64_t known, const LedgerFacts& facts,
                 std::optional<WallMs> now = {});

// Returns whether a tag that the registry shows as deleted was created again afterwards. A tag can
// be deleted only before its first number, so numbers in a report or in the backup are later.
bool ExistedAgain(const std::string& deleted_tag, const LedgerFacts& facts);

// Adds the documents' settings, machine ids and bounds, if the facts contain no others. A cluster
// that still has more machine ids than the documents keeps them, unless it is replaced.
void AddDocuments(const LedgerFacts& ledgers, const Audit& audit, RestoreFacts& facts);

// Returns the next numbers of tags that earlier runs of an unfinished restore had as answers, as a
// report: the restore may have been completed, and servers may have issued these numbers, before
// the registry went back. `audit` is from before this run stores its own answers.
ProviderReport UsedStarts(const Audit& audit);

// Returns whether this restore or an unfinished one replaces the registry's tags and records,
// because their cluster was never used.
bool ReplacesUnused(const Audit& audit, const RestoreFacts& facts);

// Returns whether the cluster has just been restored, with a floor above all known times, and has
// servers, which would have noticed a loss since then. Does not check tags: see TagsCover.
bool FloorCovers(const Audit& audit, const RestoreFacts& facts);

// Returns whether every tag of the answers and of the backup exists, with the same form and a
// ledger above their numbers. A tag of the backup may also have been deleted, unless it
// ExistedAgain.
bool TagsCover(const TagListing& listing, const RestoreCall& call);

// Returns the time that ids may have reached for certain. A bound more than a day above it is an
// error. `root_floor`: of the root node; 0: there is none. `lead`: LeadOf the eras before.
WallMs CertainTime(WallMs now, WallMs root_floor, Milliseconds lead, const RestoreFacts& facts);

// The highest time that ids may have reached, collected bound by bound.
class Frontier {
 public:
  explicit Frontier(WallMs start) : start_(start), highest_(start) {}

  // False: so far ahead of all certain bounds that a clock must have been wrong.
  bool Take(WallMs bound);
  WallMs highest() const { return highest_; }

 private:
  const WallMs start_;
  WallMs highest_;
};

// Returns the floor that RestoreCluster would set at the time of `facts`, for a plan.
WallMs PlannedFloor(const Audit& audit, const RestoreFacts& facts);

// A question for the operator, and its answers for --set, with placeholders.
struct Question {
  std::string what;
  std::vector<std::string> answers{};
};
using Questions = std::vector<Question>;
inline constexpr size_t kAskedTagsMax = 20;  // more tags than this get one answer for all

// Ids in two forms may be equal although their numbers differ. A tag that this restore has made has
// issued none.
void AskOfForms(const Audit& audit, const RestoreCall& call, Questions& open);
// Asks for tags that the restore would define by documents that differ.
void AskOfDefinitions(const Audit& audit, const RestoreCall& call, Questions& open);
// Likewise for the share of machine ids for leases, which only a new root node gets.
void AskOfShares(const Audit& audit, const RestoreCall& call, Questions& open);

// The questions of a restore. Each function returns kConflict if only an operator can know the
// answer. The message contains the command to run instead, which repeats the flags of `ran`.

// Returns kConflict if an unfinished restore used a document that this run lacks.
Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place);

// Returns kConflict if an answer is below a known value, unless an unfinished restore has used it.
Status CheckAnswersRaise(const Audit& audit, const RestoreCall& call);

// Asks for facts that servers do not report, before the restore writes anything:
//
// * The cluster is lost, and no document contains its settings, its claim window, or its tags.
// * The registry, a document or an answer give a tag another form than its ids may have. If only
//   the registry shows an owner, nothing is asked; if only a document does, either answer fits.
// * Documents show different definitions of a tag, or shares of machine ids for leases, that the
//   restore needs, and none of them is known to be later.
Status CheckSettings(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran);

// Asks under the frozen root node, with the reports of running servers:
//
// * A server reports a lost tag that neither the answers nor a document define: it would freeze the
//   cluster again.
// * The number of a tag is unknown: the cluster is frozen because the ledger went back, and nothing
//   shows the earlier ledger; or the gap would leave the tag no numbers; or a server's document has
//   a higher number than all running servers report.
// * The highest time of ids is unknown: a document contains a holder that does not report, and no
//   document contains the floor of the last restore.
// * The forms and definitions of tags, and the share, as in CheckSettings.
Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, WallMs now,
                         const RestoreArguments& ran);
// Checks the first of these conditions only.
Status CheckLostTags(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran);

// Returns the bounds ahead of `now` in documents that no running server reports. A bound of a lease
// is compared by its time only, since servers report leases without their machine ids. Leaves out
// implausible bounds, unless no document shows how far ids are ahead of the clock.
std::vector<ReportedBound> SilentHolders(const Audit& audit, const std::vector<Backup>& documents,
                                         WallMs now);

}  // namespace firn
