#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "registry/operate/audit.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore_policy.h"

namespace firn {

// The flags and arguments of `firn restore`.
struct RestoreOptions {
  std::string uuid{};                                // of the lost cluster; empty: not named
  std::vector<RestoreMemory::Document> documents{};  // merged into the backup in `call`
  std::string layout{};
  int rack_bits = -1;
  std::string default_strategy{};
  WallMs ids_since{};                 // 0: not named
  std::optional<uint32_t> workers{};  // empty: as many as exist, or all of the layout
  std::optional<int64_t> lease_share{};
  Milliseconds window{}, skew_max{};
  std::vector<ReportedBound> bounds{};
  std::vector<MachineId> retired{};
  std::vector<ReservedIds> reserved{};
  bool again = false, dry_run = false;
  // Whether a flag or an argument stands for what the server that printed the command had not read.
  bool is_unread = false;
  // Those of --layout, --rack_bits, --default_strategy, --ids_since and --reserve that are named,
  // with a value.
  std::set<std::string_view> given{};
  RestoreCall call{};  // without reports
  // As they were given, for the command that is printed if this one does not suffice.
  std::vector<std::string> said_flags{}, said_tags{};

  bool Gives(std::string_view flag) const { return given.contains(flag); }
};

// Parses the flags and arguments, and reads --from. `words` define lost tags in the notation of
// registry/operate/restore_command.h.
Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& words);

// Gathers the facts for a restore from the options with their backup, the registry and the running
// servers' reports. kConflict: the registry contains another cluster, which was in use.
Result<RestoreFacts> GatherFacts(const RestoreOptions& options, const Audit& audit, WallMs now);

// Returns the command with these options, for one that is printed instead.
RestoreArguments RanCommand(const RestoreOptions& options);

// Adds the flags and arguments of an earlier run that was interrupted.
Status Recall(const RestoreMemory& earlier, RestoreOptions& options);

// Returns what a later run needs if the one with these options is interrupted.
RestoreMemory MemoryOf(const RestoreOptions& options);

// Returns kInvalid if the options are unread, and neither the registry nor a backup contains the
// cluster.
Status CheckRead(const RestoreOptions& options, const Audit& audit, const RestoreFacts& facts);

}  // namespace firn
