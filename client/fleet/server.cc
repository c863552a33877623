#include "client/fleet/server.h"

namespace firn::client {

ServerFitness Server::Standing() const {
  const bool leaves = known.phase == ServerPhase::kDraining || known.phase == ServerPhase::kOffline;
  if (membership.quarantined() || membership.foreign()) return ServerFitness::kQuarantined;
  if (membership.draining() || leaves) return ServerFitness::kDraining;
  if (known.disabled || known.weight <= 0) return ServerFitness::kDisabled;
  if (health.resting()) return ServerFitness::kResting;
  return health.failing() ? ServerFitness::kFailing : ServerFitness::kFit;
}

}  // namespace firn::client
