#pragma once

#include <cstddef>

#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "tools/firn/output.h"

namespace firn {

// Each adds to the output of `firn restore`.

// What was done.
void TellDone(const RestoreReport& report, Output& output);

// Flags that were not given although the cluster is re-created, so that it may lack something that
// the lost one had. `lost`: the command named the lost cluster.
void WarnOfUnknown(const RestoreReport& report, bool lost, Output& output);

// What was known; `said` is the number of bounds of --bound_ms.
void TellKnown(const Audit& audit, size_t said, const RestoreReport& report, Output& output);

}  // namespace firn
