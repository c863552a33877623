#pragma once

#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore_policy.h"
#include "tools/firn/output.h"

namespace firn {

// The flags of `firn restore`.
struct RestoreOptions {
  std::string uuid{};                                // of the lost cluster; empty: not given
  std::vector<RestoreMemory::Document> documents{};  // merged into the backup in `call`
  std::string layout{};
  int rack_bits = -1;
  WallMs ids_since{};  // 0: not given
  Milliseconds skew_max{};
  bool again = false, dry_run = false;
  RestoreCall call{};  // without reports
  // Flags as given, for the command that is printed if this one does not suffice.
  std::vector<std::string> said_flags{};
};

// Parses the flags and the answers of --set, and reads --from.
Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& answers);

// Returns the answers of --set.
std::vector<std::string> AnswersOnCommandLine();

// Gathers the facts for a restore from the options, their backup, the registry and the reports of
// running servers. kConflict: the registry contains another cluster that was in use.
Result<RestoreFacts> GatherFacts(const RestoreOptions& options, const Audit& audit, WallMs now);

// Returns the arguments of this command, for a printed command that replaces it.
RestoreArguments RanCommand(const RestoreOptions& options);

// Adds the flags and answers of an earlier run that was interrupted.
Status Recall(const RestoreMemory& earlier, RestoreOptions& options);

// Returns what a later run must know if the run with these options is interrupted.
RestoreMemory MemoryOf(const RestoreOptions& options);

// Returns the arguments that select the registry and its credentials, for a printed restore
// command.
RestoreArguments RestorePlace();

}  // namespace firn
