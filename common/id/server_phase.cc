#include "common/id/server_phase.h"

namespace firn {

std::string_view PhaseName(ServerPhase state) {
  switch (state) {
    case ServerPhase::kNotReady:
      return "NOT_READY";
    case ServerPhase::kReady:
      return "READY";
    case ServerPhase::kOffline:
      return "OFFLINE";
    case ServerPhase::kDraining:
      return "DRAINING";
  }
  return "no such phase";
}

}  // namespace firn
