#pragma once

#include "registry/claim/claim_status.h"
#include "registry/claim/keeper_time.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Keeps a machine id for this process and hands claims on it to those who issue: one that a
// registry grants (ClaimKeeper), or one that an operator has given by hand (StaticKeeper).
//
// A state machine: it reads no clock, owns no thread and never sleeps. Owned by the control thread.
class Keeper {
 public:
  virtual ~Keeper() = default;

  // What the coordinator's session handler was told. Taken note of; acted on in the next Tick.
  virtual void OnSession(const SessionEvent& event) = 0;

  // Does all that is due. Cheap when nothing is.
  virtual void Tick(const KeeperTime& now) = 0;

  // The clean stop: closes the user at once. Tick until state() is kReleased. Called again:
  // nothing.
  virtual void Release(const KeeperTime& now) = 0;

  virtual ClaimState state() const = 0;

  // A copy for others to keep; `now` tells how much time is left.
  virtual ClaimStatus status(const KeeperTime& now) const = 0;
};

}  // namespace firn
