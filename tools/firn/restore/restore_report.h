#pragma once

#include <cstddef>
#include <string>

#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "tools/firn/output.h"
#include "tools/firn/restore/restore_facts.h"

namespace firn {

// Each function adds to the output of `firn restore`.

// Adds what the restore did.
void PrintResult(const RestoreReport& report, Output& output);

// Warns of flags that were not given although the lost cluster that the options name is re-created,
// so that it may lack a setting of that cluster.
void WarnOfUnknown(const RestoreReport& report, const RestoreOptions& options, Output& output);

// Adds what a restore would do to everything but tags.
void PrintPlan(const Audit& audit, const RestoreFacts& facts, Output& output);

// Adds what the restore knew, and did not know.
void PrintKnown(const Audit& audit, const RestoreCall& call, const RestoreFacts& facts,
                const RestoreReport& report, Output& output);

}  // namespace firn
