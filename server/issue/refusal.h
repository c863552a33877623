#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "common/id/reason.h"

namespace firn {

// The reason for refusing a call. A refused call has issued no id.
struct Refusal {
  Reason reason = Reason::kInternal;
  std::string message;         // a sentence for people
  int32_t retry_after_ms = 0;  // when a retry may succeed; 0: unknown
  bool another_server_may_help = false;

  friend bool operator==(const Refusal&, const Refusal&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
    return out << ReasonName(refusal.reason) << ": " << refusal.message;
  }
};

}  // namespace firn
