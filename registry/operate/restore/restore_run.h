#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore/restore_options.h"
#include "registry/operate/restore/restore_tags.h"
#include "registry/operate/restore_command.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// What RunRestore needs besides the registry and the options. References must outlive the call.
struct RestoreContext {
  const Clock& clock;
  Entropy& entropy;
  RestoreArguments command{};  // the registry, the credentials and the host, for printed commands
  // Waits until running servers have reported their numbers. `frozen`: the cluster is.
  std::function<void(bool frozen)> await_reports = [](bool) {};
  // Called before a run continues an unfinished restore with its flags.
  std::function<void(const RestoreMemory& earlier)> on_recall = [](const RestoreMemory&) {};
};

// The outcome of RunRestore. A value.
struct RestoreOutcome {
  enum class Kind {
    kNothingNew,  // the cluster was restored with the same facts, so nothing was changed
    kPlanned,     // of a dry run, or because of a question
    kRestored,
  };
  Kind kind = Kind::kNothingNew;
  Audit audit{};  // as last read
  RestoreFacts facts{};
  Status question{};  // kPlanned: kConflict, with the command to run instead; ok: there is none
  std::vector<RestoredTag> tags{};
  std::vector<std::string> unreadable{};  // tags that are left unreadable
  RestoreReport report{};                 // of kRestored
};

// Runs `firn restore`: reads the registry, merges it with the options and with the memory of an
// unfinished restore, makes a plan, and executes it unless a question is open. Sets `options` to
// the merged ones.
//
// If the servers' reports may be incomplete, freezes the cluster and waits for them: a backup does
// not contain the numbers that servers have issued since, a server that has just started has not
// reported its numbers yet, and a wiped registry lacks the parent node of the reports.
//
// kConflict: the options do not suffice, or contradict what is known; the message says what to run.
// After another failure the cluster may be frozen, and the call may be repeated. Blocks.
Result<RestoreOutcome> RunRestore(BlockingCoordinator& registry, const RestoreContext& context,
                                  RestoreOptions& options);

}  // namespace firn
