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

// What a machine id beside the first has of its own: a name in the slot's record, so that it takes
// none of its siblings for its own past, and files, so that it goes on in none of their claims.
struct SiblingClaim {
  std::string owner;
  std::unique_ptr<StateFolder> folder;
};

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

// The machine ids of one process: for each a keeper, and a sequence that issues under what this one
// holds. They share the registry's session and the id clock, and nothing else: to the registry they
// are so many servers, and one that is lost stops its own sequence alone.
//
// Owned by the control thread; strategy() may be asked by anybody.
class MachineIds {
 public:
  // Makes the keeper of one, counted from 0.
  using MakeKeeper = std::function<std::unique_ptr<Keeper>(size_t number, ClaimUser& user)>;

  // At least one. All references must outlive it.
  MachineIds(size_t count, const MakeKeeper& make, IdClock& id_clock, TickSource& ticks,
             Entropy& entropy, const SnowflakeOptions& options);

  const std::shared_ptr<Strategy>& strategy() const { return strategy_; }

  void OnSession(const SessionEvent& event);
  void Tick(Now now);
  void Release(Now now);

  bool holds() const;
  // Whether it holds one, and each that it holds is checked (Keeper::checked).
  bool checked() const;
  // How each of them is.
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

// All of them as one. The first that is held stands for it, or else whichever has come farthest: it
// is released only when all are. Its bound is the highest of all, held or not, since nothing below
// that is free for others. Its reason is that one's; if it has none, that of another one.
ClaimStatus Together(const std::vector<ClaimStatus>& claims);

}  // namespace firn
