#pragma once

#include <memory>

#include "common/base/units.h"
#include "common/id/claim.h"
#include "common/time/clock.h"

namespace firn {

// Whoever issues under a claim, as the keeper of the claim sees them: the issuing core's adaptor in
// a server, an oracle in the simulation. All verbs are called on the control thread; issuing goes
// on in other threads meanwhile, so an implementation has to be ready for both.
class ClaimUser {
 public:
  virtual ~ClaimUser() = default;

  // A new claim: from now on issue under it, with a *new* sequencer, and carry the id clock to at
  // least its first tick. Never called while another claim is adopted and not closed.
  virtual void Adopt(std::shared_ptr<Claim> claim) = 0;

  // The id clock, and whatever reads it, is to show `time` at the moment `now`, earlier or later
  // than it has shown. Never called while a claim is adopted, nor once an id was given out. Returns
  // what the id clock shows.
  virtual WallMs SetIdClock(WallMs time, Now now) = 0;

  // The highest tick used under the adopted claim; first_tick() - 1 when none was.
  virtual Tick Last() const = 0;

  // Ends issuing under the adopted claim for ever: when it returns no thread issues under it, now
  // or later. Returns what Last() will be from then on.
  virtual Tick Close() = 0;
};

}  // namespace firn
