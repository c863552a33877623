#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "server/issue/refusal.h"

namespace firn {

// Whether clients should use this server, i.e. whether it could issue an id now. A fault counts
// once it has lasted for kStands, so that a claim that is lost and soon regained turns no client
// away. Its end counts at once. Thread-compatible.
class Readiness {
 public:
  static constexpr Milliseconds kStands{1'000};

  // `refusal`: what a call would get now; empty: it would get an id.
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

  // Why it is not ready; empty if it is. Not ready before the first Note without a refusal.
  const std::optional<std::string>& why_not() const { return why_not_; }

 private:
  std::optional<std::string> why_not_ = "it has just started";
  std::optional<BootMs> since_;  // beginning of a fault that does not count yet
};

}  // namespace firn
