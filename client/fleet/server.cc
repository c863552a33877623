#include "client/fleet/server.h"

namespace firn::client {

ServerFitness Server::Standing() const {
  const bool leaves = known.phase == ServerPhase::kDraining || known.phase == ServerPhase::kOffline;
  if (fitness.quarantined() || fitness.foreign()) return ServerFitness::kQuarantined;
  if (fitness.draining() || leaves) return ServerFitness::kDraining;
  if (known.disabled || known.weight <= 0) return ServerFitness::kDisabled;
  if (fitness.health.resting()) return ServerFitness::kResting;
  return fitness.health.failing() ? ServerFitness::kFailing : ServerFitness::kFit;
}

}  // namespace firn::client
