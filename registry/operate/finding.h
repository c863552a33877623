#pragma once

#include <string>

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

}  // namespace firn
