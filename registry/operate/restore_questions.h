#pragma once

#include "common/base/status.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore_memory.h"
#include "registry/operate/restore_policy.h"

namespace firn {

// What a restore asks before it continues. Pure. Each function returns kConflict if only an
// operator can know something, and the message contains the command to run instead. It repeats
// `ran`: the registry, and what else was said.

// An unfinished restore used something that this run lacks: a document, or an earlier version.
Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place);

// An answer is below what is known. What an unfinished restore has raised itself is not known.
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
// * The number of a tag: the cluster is frozen because its ledger went back, and nothing says how
//   far that ledger was; or the gap would leave the tag no numbers; or no running server reports
//   it, and a document of a server that stopped contains it.
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
