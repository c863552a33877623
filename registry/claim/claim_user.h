#pragma once

#include <memory>

#include "common/base/units.h"
#include "common/id/claim.h"
#include "common/time/clock.h"

namespace firn {

// The issuer of ids, as a keeper sees it: an adaptor of the issuing core in a server, an oracle in
// the simulation. All methods are called on the control thread while other threads issue ids, so an
// implementation must be thread-safe.
class ClaimUser {
 public:
  virtual ~ClaimUser() = default;

  // Starts issuing under a new claim, with a *new* sequencer, and advances the id clock to at least
  // the claim's first tick. Never called while another claim is adopted and not closed.
  virtual void Adopt(std::shared_ptr<Claim> claim) = 0;

  // Sets the id clock to `time` at the moment `now`, forwards or backwards. Never called while a
  // claim is adopted, nor after an id was issued. Returns
  // the id clock's time.
  virtual WallMs SetIdClock(WallMs time, Now now) = 0;

  // Returns the highest tick used under the adopted claim; first_tick() - 1 if none was.
  virtual Tick Last() const = 0;

  // Permanently ends issuing under the adopted claim. After it returns, no thread issues under that
  // claim. Returns the final value of Last().
  virtual Tick Close() = 0;
};

}  // namespace firn
