#include "registry/operate/finding.h"

#include <algorithm>

#include "common/base/printed_command.h"

namespace firn {
namespace {

std::string AskServers() {
  return "run the " + PrintCommand(PrintedCommand::kRestore) +
         " command that a running server prints in its log and as `trouble` in its /v1/status";
}

}  // namespace

std::vector<AuditFinding> ByUrgency(std::vector<AuditFinding> findings,
                                    const std::string& restore_command) {
  std::ranges::stable_sort(findings, {}, &AuditFinding::urgency);
  for (AuditFinding& finding : findings) {
    if (finding.restore && finding.fix.empty()) {
      finding.fix = restore_command.empty() ? AskServers() : restore_command;
    }
  }
  return findings;
}

}  // namespace firn
