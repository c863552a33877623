#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/claim/acquisition.h"
#include "registry/claim/believed_clock.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/slot_upkeep.h"
#include "registry/claim/slot_write.h"
#include "registry/claim/tenure.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The claim that backs one lease of a machine id. It is claimed once, renewed and released by the
// protocol of every claim (RULES.md), and never claimed a second time. WHY-LEASES-HOLD.md, beside
// this file, contains the argument.
//
// It has no grant file and no hint, and leaves the id clock alone. What programs may issue is
// decided by its owner, which must never promise ids at or above bound().
//
//  claiming    One attempt (Acquisition), or one to resume the claim of a dead process: the record
//              must have its nonce. Refused: the end, with a reason -> refused.
//  held        Renewed. `ending` afterwards, as the cluster was restored or changed, or from the
//              start, if nothing can be written: the bound is not raised any more.
//  gone        The slot has another holder, was lost without a freeze, or was left to another
//              process by Abandon: no id may be issued.
//  releasing   After Release -> ended.
//
// A state machine like ClaimKeeper: it reads no clock and never sleeps. Owned by the control
// thread. The destructor releases nothing, like kill -9.
class LeaseClaim {
 public:
  enum class State { kClaiming, kRefused, kHeld, kGone, kReleasing, kEnded };

  // The claim of a dead process of this server.
  struct Dead {
    // Word and registry-read members are adopted from the registry.
    Tenure::Terms terms{};
    // The process may have lowered R to this bound. If not, it never lowered R.
    bool lowered = false;
  };

  struct Input {
    std::string uuid{};   // the cluster's, if it is known
    int64_t session = 0;  // of the coordinator; 0: not connected
    ClaimHooks hooks{};
    std::optional<Dead> resumed{};  // to be resumed
  };

  // `options` must have passed Check and name the lease. The references must outlive the object.
  LeaseClaim(ClaimOptions options, Coordinator& coordinator, Entropy& entropy, Input input,
             const KeeperTime& now);
  LeaseClaim(const LeaseClaim&) = delete;
  LeaseClaim& operator=(const LeaseClaim&) = delete;

  // As Keeper::OnSession.
  void OnSession(const SessionEvent& event);

  // Does everything that is due. Cheap if nothing is.
  void Tick(const KeeperTime& now);

  // Sets the bound to `bound` and the nonce to zero, so that the slot is free from then on. No
  // program may issue at or above it. Only while it is held; call Tick until the state is kEnded.
  void Release(WallMs bound, BootMs until);
  // As Release, but the record keeps the nonce: until `bound`, a later process can resume the
  // claim.
  void Suspend(WallMs bound, BootMs until);
  // Ends the use of the claim; its record stays for another process. `why` becomes the reason.
  void Abandon(std::string why);

  State state() const { return state_; }
  uint32_t rack() const { return options_.rack; }
  // Why it was refused, is gone, will not be renewed, or was not released; otherwise empty.
  const std::string& reason() const { return reason_; }
  // Of a refused claim: whether the cluster has no machine ids for leases.
  bool lacks_share() const { return lacks_share_; }
  // Of a refused claim: whether the rack has no free machine id.
  bool none_free() const { return none_free_; }
  // Of a refused claim: when to try again.
  Milliseconds retry_after() const { return retry_after_; }
  // Of a refused claim that was to be resumed: whether it is over.
  bool is_over() const { return is_over_; }
  // The later of the id clock, the claim's base and the cluster's time. Once it was held.
  WallMs TimeAt(const KeeperTime& now) const { return upkeep_->TimeAt(now); }
  // Whether the bound is final.
  bool ending() const { return upkeep_ != nullptr && upkeep_->fate() != SlotUpkeep::Fate::kHeld; }
  // Set once it was held; kept until the object ends.
  const std::optional<Tenure>& tenure() const { return tenure_; }

 private:
  // An attempt to resume a claim.
  struct Resumption {
    Resumption(Coordinator& coordinator, const ClaimOptions& options)
        : async_registry(coordinator), clock(options.skew_max, options.registry_shares_clock) {}

    AsyncRegistry async_registry;
    BelievedClock clock;
    int64_t live_session = 0;  // of our `live`; 0: it was not written
    std::string final_why{};   // why its bound is final; empty: it is not
    Task<Result<Tenure::Terms>> task{};
  };

  void FinishAcquisition();
  void FinishResumption();
  Task<Result<Tenure::Terms>> TakeOver(Dead dead);
  SlotChange TakingOver(const Tenure::Terms& terms, bool live, int64_t session);
  void Hold(Tenure::Terms terms, SlotUpkeep::Live live, const BelievedClock& clock);

  const ClaimOptions options_;
  Coordinator& coordinator_;
  Entropy& entropy_;
  const ClaimHooks hooks_;
  State state_ = State::kClaiming;
  KeeperTime now_;
  int64_t session_;
  std::string reason_;
  bool lacks_share_ = false;
  bool none_free_ = false;
  Milliseconds retry_after_{0};
  bool is_over_ = false;
  std::unique_ptr<Acquisition> acquisition_;
  std::unique_ptr<Resumption> resumption_;
  std::optional<Tenure> tenure_;
  std::unique_ptr<SlotUpkeep> upkeep_;
};

}  // namespace firn
