#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/base/fork.h"
#include "common/time/entropy.h"
#include "registry/claim/acquisition.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/claim_user.h"
#include "registry/claim/keeper.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/slot_upkeep.h"
#include "registry/claim/tenure.h"
#include "registry/seam/coordinator.h"
#include "registry/state/grant_file.h"

namespace firn {

// Keeps a machine id for this process: claims a slot, moves its bound ahead, goes on inside an old
// claim after a crash, gives it back, and stops when it is lost. The protocol and the argument for
// it stand beside this file, in RULES.md and WHY-IT-HOLDS.md; this is who does what.
//
// A state machine. Tick does everything: first the answers that have arrived, then what is due. It
// reads no clock, owns no thread and never sleeps. Owned by the control thread, which calls
// coordinator.Dispatch and then Tick, for ever.
//
//  1 seeking    No claim. At the retry time, with a session: -> 2. With a grant file of its own and
//               no session in time it goes on inside the old claim: -> 3.
//  2 claiming   A conversation with the registry (Acquisition). Won: write the grant, then the
//               hint, hand a new Claim to the user -> 3. Refused: say why, retry with jitter -> 1.
//  3 holding    The user issues below min(R, L). L is pushed ahead on file, then in memory. R is
//               moved, and everything looked at, by SlotUpkeep.
//               Another's nonce or creation: close at once, alarm -> 1.
//               Root node changed since: -> 4. Root node or record lost, or older than remembered:
//               freeze the cluster, then look again; acknowledged and nobody else there: -> 4,
//               otherwise close at once -> 1.
//               R reached: the user runs dry by itself; look as soon as the registry is back, and
//               unless an own late renewal is found: close -> 1.
//  4 lapsing    As holding, but never renewed. R reached: close -> 1.
//  5 releasing  Closed, grant void. The bound is set to just above what was used. Acknowledged, not
//               ours any more, or waited long enough: -> 6.
//  6 released   The end. Nothing is done any more.
//
// The user is always closed before anything that lets others in. A claim that was lost, and a grant
// that the registry contradicts, are void on file, too: no later start goes on inside them. A
// process that saw its cluster forget a claim claims nothing under a root node whose floor lies
// below that claim's bound: it freezes the cluster instead.
//
// Sharp edge: session events must be handed to OnSession; without them the keeper believes itself
// disconnected. The destructor neither releases nor voids: that is what kill -9 does, too. In a
// forked child nothing is done: the claim is the parent's.
class ClaimKeeper final : public Keeper {
 public:
  // `options` must have passed Check. All references must outlive the keeper. `folder` has the
  // lock.
  ClaimKeeper(ClaimOptions options, Coordinator& coordinator, StateFolder& folder, ClaimUser& user,
              Entropy& entropy, ClaimHooks hooks = {});

  // What the coordinator's session handler was told. Taken note of; acted on in the next Tick.
  void OnSession(const SessionEvent& event) override;

  // Does all that is due. Cheap when nothing is.
  void Tick(const KeeperTime& now) override;

  // The clean stop: closes the user at once and begins to give the slot back. Tick until state() is
  // kReleased. Called again: nothing. Without a session the grant file stays, and the next start
  // goes on inside the claim.
  void Release(const KeeperTime& now) override;

  ClaimState state() const override { return state_; }
  // A copy for others to keep; `now` tells how much time is left.
  ClaimStatus status(const KeeperTime& now) const override;
  // The claim that is being held; null while there is none. Valid until the next call.
  const Tenure* tenure() const;
  // False once the grant file could not be written and was removed: L is R then.
  bool has_file() const { return has_file_; }

 private:
  void LoadFiles();
  void LoadGrant();
  void Seek();
  bool StartOffline();
  void FinishAcquisition();
  void Begin(Tenure::Terms terms, SlotUpkeep::Live live);
  void KeepHint();
  void Hold();
  void RaiseLimit(WallMs limit);
  bool KeepGrant(WallMs limit);
  WallMs SetIdClock(WallMs time);
  void Close(std::string why);
  firn::Tick CloseUser();
  bool VoidGrant();
  void ForgetGrant();
  void FinishRelease();

  void Tell(ClaimEvent::Kind kind, std::string text) const;

  const ClaimOptions options_;
  Coordinator& coordinator_;
  StateFolder& folder_;
  ClaimUser& user_;
  Entropy& entropy_;
  const ClaimHooks hooks_;
  GrantFile grant_file_;
  ForkSentinel sentinel_;

  ClaimState state_ = ClaimState::kSeeking;
  KeeperTime now_;
  int64_t session_ = 0;  // 0: not connected
  std::optional<BootMs> started_;
  BootMs retry_at_;
  std::string reason_;
  BootMs unreached_since_;  // while there is no session

  std::optional<Grant> grant_;     // from a dead process, while it may be of use
  bool grant_tells_time_ = false;  // the id clock goes by its pair
  bool issued_ = false;            // some id was given out, so the id clock may not be set any more
  std::optional<Hint> hint_;
  std::string uuid_;   // of the cluster, once known
  WallMs lost_up_to_;  // the cluster forgot a claim of ours that went up to here
  WallMs highest_bound_;

  std::unique_ptr<Acquisition> acquisition_;
  std::optional<Tenure> tenure_;
  std::unique_ptr<SlotUpkeep> upkeep_;
  RenewalCounts renewals_;  // of claims that have ended
  firn::Tick seen_;         // the highest Last() of the present claim's user
  BootMs push_at_;
  BootMs keep_hint_at_;  // with the last id time
  bool has_file_;        // there is a grant file that must be written before L rises
  bool stuck_ = false;   // it can be neither written nor removed, so L stays where it is
  std::string grant_trouble_;
};

}  // namespace firn
