#pragma once

#include <memory>

#include "common/id/id_clock.h"
#include "common/sequence/tick_source.h"
#include "common/time/clock.h"
#include "registry/claim/claim_user.h"
#include "server/issue/snowflake/snowflake.h"

namespace firn {

// Whether the id clock may still be set, shared by several keepers of one process: as long as none
// of them has a claim, and no id was issued under any. Owned by the control thread.
struct IdClockUse {
  int adopted = 0;  // claims that are in use now
  bool issued = false;

  bool begun() const { return adopted > 0 || issued; }
};

// Passes the keeper's claims to the snowflake strategy, and the strategy's last tick to the keeper.
// Called on the control thread. All references must outlive it.
class ClaimBridge final : public ClaimUser {
 public:
  ClaimBridge(Snowflake& snowflake, TickSource& ticks, IdClockUse& use)
      : snowflake_(snowflake), ticks_(ticks), use_(use) {}

  // A claim that the strategy refuses is a defect or a lack of memory: no id is ever issued under
  // it, so the keeper holds it without use, safely; the log reports the cause.
  void Adopt(std::shared_ptr<Claim> claim) override;
  // Does nothing once the id clock is in use: this keeper cannot know of the others.
  WallMs SetIdClock(WallMs time, Now now) override;
  Tick Last() const override;
  Tick Close() override;

 private:
  Snowflake& snowflake_;
  TickSource& ticks_;
  IdClockUse& use_;
  Tick before_first_;  // what Last returns while nothing has been used
};

}  // namespace firn
