#pragma once

#include "tools/firn/command.h"

namespace firn {

// The verbs of the firn command. Each is defined in the file of its name or family.
Verb ExplainVerb();
Verb ComposeVerb();
Verb InitVerb();
Verb RestoreVerb();
Verb AuditVerb();
Verb BackupVerb();
Verb DoctorVerb();
Verb UpgradeVerb();
Verb SetVerb();
Verb RevealVerb();
Verb WhoVerb();
Verb MachinesVerb();
Verb TagsVerb();
Verb TagsImportVerb();  // below `tags`
Verb NextVerb();
Verb ServersVerb();
Verb BenchVerb();
Verb DrillVerb();

}  // namespace firn
