#include "registry/claim/claim_status.h"

#include "common/base/printed_command.h"

namespace firn {

std::string_view ClaimStateName(ClaimState state) {
  switch (state) {
    case ClaimState::kSeeking:
      return "seeking";
    case ClaimState::kClaiming:
      return "claiming";
    case ClaimState::kHolding:
      return "holding";
    case ClaimState::kLapsing:
      return "lapsing";
    case ClaimState::kReleasing:
      return "releasing";
    case ClaimState::kReleased:
      return "released";
  }
  return "unknown";
}

std::ostream& operator<<(std::ostream& out, ClaimState state) {
  return out << ClaimStateName(state);
}

bool AsksForRestore(const ClaimStatus& status) { return AsksForRestore(status.reason); }

std::string_view ClaimEventName(ClaimEvent::Kind kind) {
  switch (kind) {
    case ClaimEvent::Kind::kClaimed:
      return "claimed";
    case ClaimEvent::Kind::kInherited:
      return "inherited";
    case ClaimEvent::Kind::kOffline:
      return "offline";
    case ClaimEvent::Kind::kReleased:
      return "released";
    case ClaimEvent::Kind::kLost:
      return "lost";
    case ClaimEvent::Kind::kRefused:
      return "refused";
    case ClaimEvent::Kind::kAlarm:
      return "alarm";
  }
  return "unknown";
}

}  // namespace firn
