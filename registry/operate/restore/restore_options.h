#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/operate/audit.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore_memory.h"
#include "registry/operate/restore_policy.h"

namespace firn {

// The flags that a later run needs, or that a printed command repeats, besides --set.
inline constexpr std::string_view kRestoreFlags[] = {
    "uuid", "layout", "rack_bits", "ids_since", "skew_max_ms", "tag_gap", "again"};

// What an operator gives to a restore: flags, answers and documents. A value.
struct RestoreOptions {
  std::string uuid{};  // of the lost cluster; empty: not given
  std::string layout = "firn";
  int rack_bits = -1;  // -1: the layout's default
  WallMs ids_since{};  // 0: not given
  Milliseconds skew_max{10'000};
  bool again = false, dry_run = false;
  std::vector<RestoreMemory::Document> documents{};  // those of `call`
  RestoreCall call{};                                // without reports
  std::vector<std::string> flags{};  // as given: `--skew_max_ms=5`, `--set=retire=5`

  // Returns whether the flag of this name is given.
  bool IsGiven(std::string_view flag) const;
};

// Sets the options by flags in the form of RestoreOptions::flags, which become the given ones.
// Values of other flags stay, answers do not. kInvalid names an invalid flag, kConflict a document
// of another cluster.
Status SetFlags(const std::vector<std::string>& flags, RestoreOptions& options);

// Adds a document and merges it. kConflict: it is of another cluster than the others or --uuid.
Status AddDocument(const std::string& path, Backup document, RestoreOptions& options);

// Adds the flags and answers of an earlier run that was interrupted.
Status Recall(const RestoreMemory& earlier, RestoreOptions& options);

// Returns what a later run must know if a run with these options is interrupted.
RestoreMemory MemoryOf(const RestoreOptions& options, const std::string& host);

// Returns the arguments of the command with these options, for a printed command that replaces it.
// `place`: the registry, the credentials and the host.
RestoreArguments RanCommand(const RestoreOptions& options, RestoreArguments place);

// Gathers the facts for a restore from the options, the registry and the reports of running
// servers. kConflict: the registry contains another cluster that was in use.
Result<RestoreFacts> GatherFacts(const RestoreOptions& options, const Audit& audit, WallMs now);

}  // namespace firn
