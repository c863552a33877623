#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/servers/provider.h"
#include "tools/firn/restore/ledger_lift.h"
#include "tools/firn/restore/restore_tags.h"

namespace firn {

// What the flags, arguments and the backup of `firn restore` say of tags.
struct RestoreCall {
  std::vector<GivenTag> tags{};
  ProviderReport highs{};  // --tag_high, in the form of a server's report
  LedgerFacts ledgers{};   // without reports
};

// Parses the flags and arguments, and reads --from. `words` define lost tags in the notation of
// registry/operate/restore_command.h.
Result<RestoreCall> ReadRestoreCall(const std::vector<std::string>& words);

// Gathers the facts for a restore from the flags, the backup, the registry and the running servers'
// reports. kConflict: the registry contains another cluster, which was in use.
Result<RestoreFacts> GatherFacts(const Audit& audit, const std::optional<Backup>& backup);

// Returns kInvalid if a flag or an argument stands for what the server that printed the command had
// not read, and neither the registry nor the backup contains it.
Status CheckRead(const std::vector<std::string>& words, const Audit& audit,
                 const RestoreFacts& facts, const std::optional<Backup>& backup);

}  // namespace firn
