#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/id/id_clock.h"
#include "common/sequence/tick_source.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/claim_user.h"
#include "registry/claim/keeper.h"
#include "registry/seam/coordinator.h"
#include "registry/state/state_folder.h"
#include "server/issue/snowflake/snowflake.h"

namespace firn {

// The parts of each machine id after the first. It has a separate owner name in the slot's record
// and separate state files, so that it does not resume a sibling's claim.
struct SiblingClaim {
  std::string owner;
  std::unique_ptr<StateFolder> folder;
};

// Determines whether the id clock may still be set: no keeper of this process may hold a claim or
// have issued an id. Shared by these keepers. Owned by the control thread.
struct IdClockUse {
  int adopted = 0;  // claims in use
  bool issued = false;

  bool begun() const { return adopted > 0 || issued; }
};

// Passes a keeper's claims to the snowflake strategy, and the strategy's last tick to the keeper.
// Control thread. All references must outlive this.
class ClaimBridge final : public ClaimUser {
 public:
  ClaimBridge(Snowflake& snowflake, TickSource& ticks, IdClockUse& use)
      : snowflake_(snowflake), ticks_(ticks), use_(use) {}

  // If the strategy refuses the claim (a defect, or lack of memory), no id is issued under it: the
  // keeper holds it unused, which is safe, and the log reports the cause.
  void Adopt(std::shared_ptr<Claim> claim) override;
  // Does nothing once the id clock is in use: this keeper does not know the other keepers' ids.
  WallMs SetIdClock(WallMs time, Now now) override;
  Tick Last() const override;
  Tick Close() override;

 private:
  Snowflake& snowflake_;
  TickSource& ticks_;
  IdClockUse& use_;
  Tick before_first_;  // returned by Last while no tick has been used
};

// The machine ids of one process. Each has a keeper, and a sequence that issues ids under the
// keeper's claim. They share only the registry's session and the id clock. For the registry they
// are separate servers, and the loss of one stops only its own sequence.
//
// Owned by the control thread; any thread may use strategy()'s object.
class MachineIds {
 public:
  // Makes the keeper of machine id `number`, counted from 0.
  using MakeKeeper = std::function<std::unique_ptr<Keeper>(size_t number, ClaimUser& user)>;

  // `count` is at least 1. All references must outlive this.
  MachineIds(size_t count, const MakeKeeper& make, IdClock& id_clock, TickSource& ticks,
             Entropy& entropy, const SnowflakeOptions& options);

  const std::shared_ptr<Strategy>& strategy() const { return strategy_; }

  void OnSession(const SessionEvent& event);
  void Tick(Now now);
  void Release(Now now);

  bool holds() const;
  // Returns whether a machine id is held and all held ones are checked (Keeper::checked).
  bool checked() const;
  std::vector<ClaimStatus> status(const KeeperTime& now) const;

 private:
  struct Kept {
    Kept(std::shared_ptr<Snowflake> sequence, TickSource& ticks, IdClockUse& use)
        : lane(std::move(sequence)), bridge(*lane, ticks, use) {}

    const std::shared_ptr<Snowflake> lane;
    ClaimBridge bridge;
    std::unique_ptr<Keeper> keeper{};
  };

  IdClock& id_clock_;
  IdClockUse use_;
  std::vector<std::unique_ptr<Kept>> kept_;
  std::shared_ptr<Strategy> strategy_;
};

// Combines the states of all machine ids. The state is that of the first held machine id, otherwise
// of the one that is closest to being held. So it is `released` only when all are. The bound is the
// highest of all, held or not, because no other server may use ids below it. If the selected claim
// has no reason, the reason of another one is used.
ClaimStatus Together(const std::vector<ClaimStatus>& claims);

}  // namespace firn
