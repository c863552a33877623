#pragma once

#include "common/json/json.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/operate/who.h"

namespace firn {

// Reports for operators as JSON: printed by `firn ... --json`, and returned by a server's admin
// port. Pure functions.

// Unused machine ids are omitted unless requested. Of the past holders, the last kPastShown are
// included.
inline constexpr size_t kPastShown = 5;
// `restore_command` repairs the losses (RepairCommand).
Json AuditJson(const Audit& audit, bool unused_too, const std::string& restore_command);

// The findings, most urgent first.
Json FindingsJson(const std::vector<AuditFinding>& findings);

// The servers of Audit::asked: each has `answered`, and `why` if it did not answer.
Json AskedJson(const Audit& audit);

// Every field as text, as `firn tags` accepts it, and the ledger.
Json TagJson(const TagDefinition& tag);

Json IssuersJson(const Issuers& issuers);

}  // namespace firn
