#pragma once

#include <vector>

#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore/restore_options.h"
#include "registry/operate/restore/restore_tags.h"
#include "tools/firn/output.h"

namespace firn {

// Each function adds to the output of `firn restore`.

// Adds the changes of tags that the restore made or, if `planned`, would make. Warns of tags that
// no server reports. `has_backup`: the restore has documents.
void PrintTags(const std::vector<RestoredTag>& tags, bool planned, bool has_backup, Output& output);

// Adds the other changes that the restore made.
void PrintResult(const RestoreReport& report, Output& output);

// Warns of machine ids that are reserved again although a server has claimed them in the meantime.
// If the restore has re-created the lost cluster, also warns of missing flags: the new cluster may
// lack a setting of the lost one.
void WarnOfUnknown(const RestoreReport& report, const RestoreOptions& options, Output& output);

// Adds the changes that a restore would make, except changes of tags.
void PrintPlan(const Audit& audit, const RestoreFacts& facts, Output& output);

// Adds the facts on which the restore relied, and the facts that were not available.
void PrintKnown(const Audit& audit, const RestoreCall& call, const RestoreFacts& facts,
                const RestoreReport& report, Output& output);

}  // namespace firn
