#pragma once

#include "registry/operate/audit.h"

namespace firn {

// Adds faults and notes from one server's report to the audit, independently of the slots. The
// audit's root node must have been read.
void JudgeServer(const AuditedProvider& server, WallMs now, Audit& audit);

// Whether the server belongs to another cluster than the one that the registry contains.
bool IsForeign(const ProviderReport& report, const Audit& audit);

}  // namespace firn
