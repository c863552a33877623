#pragma once

#include "registry/claim/claim_status.h"
#include "registry/claim/keeper_time.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Holds a machine id for this process and passes claims on it to the issuer. The machine id comes
// from a registry (ClaimKeeper) or from an operator (StaticKeeper).
//
// A state machine: it reads no clock, owns no thread and never sleeps. Owned by the control thread.
class Keeper {
 public:
  virtual ~Keeper() = default;

  // Records an event of the coordinator's session. The next Tick acts on it.
  virtual void OnSession(const SessionEvent& event) = 0;

  // Does everything that is due. Cheap if nothing is.
  virtual void Tick(const KeeperTime& now) = 0;

  // Stops cleanly: closes the user at once. Call Tick until state() is kReleased. Further calls do
  // nothing.
  virtual void Release(const KeeperTime& now) = 0;

  virtual ClaimState state() const = 0;

  // Returns whether the held claim was compared with the registry after the last reconnection.
  // Until then the registry may have lost data, so nothing else may be claimed.
  virtual bool checked() const = 0;

  // Returns a copy; `now` is needed for the time left.
  virtual ClaimStatus status(const KeeperTime& now) const = 0;
};

}  // namespace firn
