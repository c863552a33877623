#include "client/fleet/server.h"

namespace firn::client {

ServerHealth Server::Standing() const {
  const bool leaves = known.phase == ServerPhase::kDraining || known.phase == ServerPhase::kOffline;
  if (membership.quarantined() || membership.foreign()) return ServerHealth::kQuarantined;
  if (membership.draining() || leaves) return ServerHealth::kDraining;
  if (known.disabled || known.weight <= 0) return ServerHealth::kDisabled;
  if (health.ejected()) return ServerHealth::kEjected;
  return health.failing() ? ServerHealth::kFailing : ServerHealth::kHealthy;
}

}  // namespace firn::client
