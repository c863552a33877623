#include "server/front/desk/server_view.h"

namespace firn::front {

std::string_view ServerStateName(ServerState state) {
  switch (state) {
    case ServerState::kNotReady:
      return "NOT_READY";
    case ServerState::kReady:
      return "READY";
    case ServerState::kOffline:
      return "OFFLINE";
    case ServerState::kDraining:
      return "DRAINING";
  }
  return "NOT_READY";
}

}  // namespace firn::front
