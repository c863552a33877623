#pragma once

#include "common/json/json.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/operate/who.h"

namespace firn {

// What operators are told, for programs: `firn ... --json` prints it, and a server's admin side
// answers it. Pure functions.

// Machine ids that were never used are left out unless they are asked for. Of those who held one
// before, the last kPastShown.
inline constexpr size_t kPastShown = 5;
Json AuditJson(const Audit& audit, bool unused_too);

// Every field as text, as `firn tags` takes it, and how far the ledger has come.
Json TagJson(const TagDefinition& tag);

Json IssuersJson(const Issuers& issuers);

}  // namespace firn
