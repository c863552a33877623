#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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

// Holds a machine id for this process: claims a slot, renews it, resumes an old claim after a
// crash, releases it, and stops when it is lost. RULES.md and WHY-IT-HOLDS.md, beside this file,
// contain the protocol and the argument for it.
//
// A state machine. Tick does everything: first the answers that have arrived, then work that is
// due. It reads no clock, owns no thread and never sleeps. Owned by the control thread, which calls
// coordinator.Dispatch and then Tick in a loop.
//
//  1 seeking    No claim. At the retry time, with a session: -> 2. With its own grant file and no
//               session in time, it resumes the old claim: -> 3.
//  2 claiming   A conversation with the registry (Acquisition). Won: write the grant, then the
//               hint, pass a new Claim to the user -> 3. Refused: report why, retry with jitter
//               -> 1.
//  3 holding    The user issues below min(R, L). L is raised in the grant file, then in memory.
//               SlotUpkeep raises R and checks the slot.
//               Another nonce or creation: close at once, alarm -> 1.
//               Root node changed since: -> 4. Root node or record lost, or older than remembered:
//               freeze the cluster, then check the slot; acknowledged and no other holder: -> 4,
//               otherwise close at once -> 1.
//               R reached: the user stops by itself. Check as soon as the registry is reachable;
//               unless an own late renewal is found: close -> 1.
//  4 lapsing    As holding, but never renewed. R reached: close -> 1.
//  5 releasing  Closed, grant void. The bound is set to just above the last id. Acknowledged, no
//               longer ours, or timed out: -> 6.
//  6 released   The end. Nothing more happens.
//
// The user is always closed before any step that lets other processes claim. The grant of a lost
// claim, and one that the registry contradicts, are voided, so that no later start resumes them. A
// process whose cluster has lost a claim of it claims nothing under a root node whose floor is
// below that claim's bound: it freezes the cluster instead.
//
// Sharp edge: session events must be passed to OnSession; without them the keeper considers itself
// disconnected. The destructor neither releases nor voids, like kill -9. In a forked child it does
// nothing: the claim belongs to the parent.
class ClaimKeeper final : public Keeper {
 public:
  // `options` must have passed Check. All references must outlive the keeper. `folder` must hold
  // the lock.
  ClaimKeeper(ClaimOptions options, Coordinator& coordinator, StateFolder& folder, ClaimUser& user,
              Entropy& entropy, ClaimHooks hooks = {});

  // Records an event of the coordinator's session. The next Tick acts on it.
  void OnSession(const SessionEvent& event) override;

  // Does everything that is due. Cheap if nothing is.
  void Tick(const KeeperTime& now) override;

  // Stops cleanly: closes the user at once and starts the release of the slot. Call Tick until
  // state() is kReleased. Further calls do nothing. Without a session the grant file stays, and the
  // next start resumes the claim.
  void Release(const KeeperTime& now) override;

  ClaimState state() const override { return state_; }
  bool checked() const override {
    return session_ != 0 && tenure() != nullptr && upkeep_->checked_in() == session_;
  }
  // Returns a copy; `now` is needed for the time left.
  ClaimStatus status(const KeeperTime& now) const override;
  // Returns the held claim; null while there is none. Valid until the next call.
  const Tenure* tenure() const;
  // False after the grant file could not be written and was removed: then L is R.
  bool has_file() const { return has_file_; }

 private:
  void LoadFiles();
  void LoadGrant();
  void LeaveToOriginal();
  void Seek();
  bool StartOffline();
  void FinishAcquisition();
  void Begin(Tenure::Terms terms, SlotUpkeep::Live live);
  void KeepHint();
  void NoteOvertaken(firn::Tick last);
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

  std::optional<Grant> grant_;     // of a dead process, while it may be used
  bool grant_tells_time_ = false;  // its clock pair has set the id clock
  bool clock_checked_ = false;     // see ClaimStatus
  // The grant's at the start, also if it may not be resumed; then the one that this process held
  // last.
  std::optional<Tenure::Terms> last_claim_;
  // Holdings that ended when another process took their slot, until its past names them.
  std::vector<PastHolder> overtaken_;
  Slot overtaken_in_{};
  bool issued_ = false;  // an id was issued, so the id clock must not be set any more
  int copies_ = 0;       // see ClaimStatus
  std::optional<Hint> hint_;
  std::string uuid_;   // of the cluster, once known
  WallMs lost_up_to_;  // highest bound of a claim of ours that the cluster has lost
  WallMs highest_bound_;

  std::unique_ptr<Acquisition> acquisition_;
  std::optional<Tenure> tenure_;
  std::unique_ptr<SlotUpkeep> upkeep_;
  RenewalCounts renewals_;  // of claims that have ended
  firn::Tick seen_;         // the highest Last() of the current claim's user
  BootMs push_at_;
  BootMs keep_hint_at_;  // with the last id time
  bool has_file_;        // there is a grant file that must be written before L rises
  bool stuck_ = false;   // it can be neither written nor removed, so L stays where it is
  std::string grant_trouble_;
};

}  // namespace firn
