#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "server/issue/refusal.h"

namespace firn {

// Determines whether clients should use this server: whether it can issue an id now. A fault counts
// only after it has lasted for kStands, so that clients do not leave when a claim is lost and soon
// regained. The end of a fault counts at once. Thread-compatible.
class Readiness {
 public:
  static constexpr Milliseconds kStands{1'000};

  // Records the refusal that a call would get now; empty if it would get an id.
  void Note(const std::optional<Refusal>& refusal, BootMs now) {
    if (!refusal) {
      why_not_.reset();
      since_.reset();
      return;
    }
    if (!why_not_) {
      if (!since_) since_ = now;
      if (now - *since_ < kStands) return;
    }
    why_not_ = refusal->message;
    since_.reset();
  }

  // Why the server is not ready; empty if it is ready. It is not ready before the first Note
  // without a refusal.
  const std::optional<std::string>& why_not() const { return why_not_; }

 private:
  std::optional<std::string> why_not_ = "it has just started";
  std::optional<BootMs> since_;  // beginning of a fault that does not count yet
};

}  // namespace firn
