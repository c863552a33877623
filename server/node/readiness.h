#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "server/issue/refusal.h"

namespace firn {

// Whether clients should come, as a server says it of itself: whether it could issue now. A trouble
// counts once it has stood for kStands, so that a claim that is lost and claimed again in a moment
// sends nobody away; its end counts at once. Thread-compatible.
class Readiness {
 public:
  static constexpr Milliseconds kStands{1'000};

  // `refusal`: what a call would be answered now; empty: an id.
  void Note(const std::optional<Refusal>& refusal, BootMs now);

  // Why it is not ready, in words; empty while it is. Before its first id nobody is.
  const std::optional<std::string>& why_not() const { return why_not_; }

 private:
  std::optional<std::string> why_not_ = "it has just started";
  std::optional<BootMs> since_;  // while it could not issue and still counts as ready
};

}  // namespace firn
