#include "server/node/claim_bridge.h"

#include <utility>

#include "common/log/log.h"

namespace firn {

void ClaimBridge::Adopt(std::shared_ptr<Claim> claim) {
  const Tick first = claim->first_tick();
  before_first_ = first - 1;
  ++use_.adopted;
  // The clock first: a claim inherited after the wall clock was set back begins ahead of it.
  ticks_.RaiseTo(first);
  const Status adopted = snowflake_.Adopt(std::move(claim));
  if (!adopted.ok())
    LogError("claim_unusable") << "no id can be issued under the claim: " << adopted;
}

WallMs ClaimBridge::SetIdClock(WallMs time, Now now) {
  if (!use_.begun()) ticks_.Restart(time, now);
  return ticks_.id_clock().Last();
}

Tick ClaimBridge::Last() const { return snowflake_.Last().value_or(before_first_); }

Tick ClaimBridge::Close() {
  const Tick last = snowflake_.CloseClaim().value_or(before_first_);
  --use_.adopted;
  use_.issued |= last > before_first_;
  return last;
}

}  // namespace firn
