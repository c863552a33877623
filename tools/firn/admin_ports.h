#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"

namespace firn {

// Asks each server for GET /v1/status at its admin port, several at a time. Ends within seconds,
// whatever the servers do. The failure of each names its port. For ReadAudit.
std::vector<Result<std::string>> AskAdminPorts(const std::vector<AuditedProvider>& servers);

// Lists the servers that gave no answer, and what is unknown of them. Empty: none was asked.
std::string AskedText(const Audit& audit);

// The TLS flags that AskAdminPorts reads, for a verb's list.
#define FIRN_ADMIN_FLAGS "tls_ca", "tls_cert", "tls_key", "tls_name"

}  // namespace firn
