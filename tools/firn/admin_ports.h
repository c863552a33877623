#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"

namespace firn {

// Sends GET /v1/status to each server's admin port, several at a time, and returns the bodies for
// ReadAudit. Returns within seconds, even if no server responds. Each failure names the port.
std::vector<Result<std::string>> AskAdminPorts(const std::vector<AuditedProvider>& servers);

// Returns a text that lists the servers that did not respond, and the facts that are therefore
// unknown. Empty if AskAdminPorts was not used.
std::string AskedText(const Audit& audit);

// The TLS flags that AskAdminPorts reads, for a verb's list.
#define FIRN_ADMIN_FLAGS "tls_ca", "tls_cert", "tls_key", "tls_name"

}  // namespace firn
