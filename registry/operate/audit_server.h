#pragma once

#include "registry/operate/audit.h"

namespace firn {

// Adds to the audit what one server says of itself that is wrong, or worth knowing, whatever the
// slots hold. Its root node must have been read.
void JudgeServer(const AuditedProvider& server, WallMs now, Audit& audit);

}  // namespace firn
