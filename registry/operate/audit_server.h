#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"

namespace firn {

// Adds faults and notes from one server's report to the audit, independently of the slots. The root
// node must have been read into the audit.
void JudgeServer(const AuditedProvider& server, WallMs now, Audit& audit);

// Whether the server belongs to another cluster than the one that the registry contains.
bool IsForeign(const ProviderReport& report, const Audit& audit);

// Facts that `firn doctor` gets from the servers directly. Reports in the registry have limits, and
// a server that has lost the registry cannot renew its own.

// Maximum size of an answer.
inline constexpr size_t kStatusBytesMax = size_t{4} << 20;

// Merges a server's answer to GET /v1/status into its report: every tag that it refuses, with the
// whole reason, and the current state of the tags that it serves. Appends the findings that only
// the server itself knows. Fails, and changes nothing, if the text is of another server or not such
// an answer. Pure.
Status TakeStatus(std::string_view json, AuditedProvider& server,
                  std::vector<AuditFinding>& findings);

// Facts that are missing if a server gave no answer, as a sentence for people.
inline constexpr char kUnknownWithoutStatus[] =
    "Not known of it: tags that it refuses beyond the 20 in its report, the middle of long "
    "reasons, what its last reload refused, whether it has lost the registry, and, for version "
    "0.1, whether it is overloaded.";

}  // namespace firn
