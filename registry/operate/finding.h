#pragma once

#include <string>
#include <vector>

#include "common/id/urgency.h"

namespace firn {

// Something that an operator should know about a cluster. `firn audit`, `firn doctor` and the
// console show the same findings. A value.
struct AuditFinding {
  Urgency urgency = Urgency::kSoon;
  std::string what;      // a sentence that names its object
  std::string fix{};     // a command, or what to do; empty: no action, or `restore`
  bool restore = false;  // `firn restore` repairs it

  friend bool operator==(const AuditFinding&, const AuditFinding&) = default;
};

// Sorts by urgency, keeping the order otherwise, and gives findings that a restore repairs that
// command as their fix; empty: only the servers know it. Pure.
std::vector<AuditFinding> ByUrgency(std::vector<AuditFinding> findings,
                                    const std::string& restore_command);

}  // namespace firn
