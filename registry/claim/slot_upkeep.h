#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "registry/claim/believed_clock.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/inspection.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/slot_write.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/root_history.h"
#include "registry/seam/async_registry.h"
#include "registry/state/kept_bounds.h"

namespace firn {

// A holder's work on its slot in the registry: raises the bound, maintains `live`, checks that the
// slot is intact, and releases it. One conversation at a time.
//
//  1. After a connection, nothing is written until the slot has been checked: the registry may have
//     lost the claim, and its version numbers may have reached the remembered ones again.
//  2. Renews every twentieth of the window, from the remembered version. The window grows with the
//     first renewals: 15 s at the claim, then 60 s, then the full window.
//  3. A renewal that fails on the root node or the version, or whose outcome stays unknown, is
//     followed by a check.
//  4. Checks the slot after every connection and every 30 to 60 s.
//  5. If the claim is lost or rolled back: freeze, then decide whether the holder may keep issuing.
//     So, too, if the root node is older than one that was read here, although the claim is intact:
//     claims under the later one are lost.
//  6. A claim whose bound has passed is not renewed, even if the check finds it intact: others may
//     have claimed the slot since, and a rolled back registry may have forgotten them. The slot has
//     to be claimed again with every check of a claim, the probation included.
//  7. A release is a renewal with nonce zero and a lower bound. Only Release sends it. Suspend
//     sends the lower bound with our nonce.
//  8. All writes from one version carry the same word (SlotRecord::word), which is in the grant
//     before it is sent. Our nonce with an unknown word belongs to a copy of this process: stop.
//  9. No bound is set more than a day ahead of the registry's believed clock (BelievedClock,
//     Tenure::Terms::CeilingAt). Until a reading is believed, renewals use the first window only.
// 10. A renewal after which the bound is less than half a window ahead counts as failed.
// 11. After an offline start no Acquisition has compared the registry with the kept bounds of
//     leases (ClaimOptions::kept). So each check compares them, until a renewal was acknowledged:
//     data from before a lease then show an older record of this slot, too. A bound that is missing
//     or lower is a loss, as in 5.
//
// Owned by the control thread.
class SlotUpkeep {
 public:
  // The state of the claim.
  enum class Fate {
    kHeld,     // renewed
    kLapsing,  // ours up to the bound, never renewed
    kGone,     // stop at once; reason() says why
  };

  // The `live` node, as known from the claim.
  struct Live {
    int64_t session = 0;   // the session of our `live`; 0: we have none
    bool present = false;  // the slot has a `live`, of any session
  };

  // Writes the tenure's grant with the word that is about to be sent. If it returns false, nothing
  // may be sent.
  using KeepGrant = std::function<bool()>;

  // The references, `tenure` included, must outlive the object.
  SlotUpkeep(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
             const ClaimHooks& hooks, Tenure& tenure, Live live, KeepGrant keep_grant, BootMs now);

  // Makes the bound final before the first Tick: no check finds a higher one.
  void Lapse(std::string why);

  void NoteRegistryClock(const BelievedClock& clock) { registry_clock_ = clock; }
  const BelievedClock& registry_clock() const { return registry_clock_; }

  // `session` 0: not connected. `used` is the highest time issued, or about to be.
  void Tick(const KeeperTime& now, int64_t session, WallMs used);

  // Requires a new check after a reconnection, also in the same session: a registry restored from a
  // backup may contain the session.
  void CheckAgain() { checked_in_ = check_began_in_ = 0; }
  // The session in which the latest check found the slot intact; 0: none since the reconnection.
  int64_t checked_in() const { return checked_in_; }

  Fate fate() const { return fate_; }
  const std::string& reason() const { return reason_; }
  // Returns whether another process, or a copy of this one, has taken the slot.
  bool overtaken() const { return overtaken_; }
  RenewalCounts renewals() const { return counts_; }
  // Returns the later of the time in our ids and the cluster's time; bounds count from it. With
  // policy strict the id clock can stop. A bound that counted from it would pass by the cluster's
  // time, and other claimants would treat the slot as free.
  WallMs TimeAt(const KeeperTime& now) const;
  // The highest bound that the registry has lost, of this claim or a lease; 0: none.
  WallMs lost_up_to() const { return lost_up_to_; }

  // Releases the slot with `bound`, which must be above everything issued. Tick until it has ended.
  void Release(WallMs bound, BootMs until);
  // As Release, but the record keeps our nonce: until `bound`, a later process can resume the
  // claim.
  void Suspend(WallMs bound, BootMs until);
  // The release was acknowledged, the slot is no longer ours, or `until` has passed.
  bool release_ended() const { return release_ended_; }

 private:
  enum class Doing { kNothing, kWriting, kChecking };

  Doing NextAction();
  void Begin(Doing what);
  Task<> Write();
  // The state when a renewal was sent.
  struct Asked {
    Now at;
    WallMs from;  // TimeAt()
    Milliseconds window;
  };
  void NoteRenewed(const SlotChange& change, const SlotWritten& written, const Asked& asked);
  void NoteClock(WallMs shown, Now asked);
  Task<> CheckSlot();
  Task<Finding> Look();
  bool NoteRoot(const Finding& finding);
  void NoteOurs(const Finding& finding);
  bool NoteChecked();
  Task<> FreezeOut();
  SlotChange Change(const Nonce& word) const;
  WallMs WantedBound() const;
  void AlarmOf(const Finding& finding);
  void TellNews();
  void Retry();
  Milliseconds Pause();
  void EndRelease(std::string reason);
  std::vector<PastHolder> Ended() const;
  Milliseconds NextWindow() const;
  bool releasing() const { return release_until_ != BootMs(); }

  const ClaimOptions& options_;
  Entropy& entropy_;
  const ClaimHooks& hooks_;
  Tenure& tenure_;
  Live live_;
  const KeepGrant keep_grant_;
  BelievedClock registry_clock_;
  // For the hooks, which are called while no task runs.
  std::vector<std::string> alarms_;
  std::string alarmed_;  // the reason of the latest loss
  bool clock_is_news_ = false;

  Fate fate_ = Fate::kHeld;
  std::string reason_;
  bool overtaken_ = false;
  WallMs lost_up_to_;
  RootHistory roots_;
  WallMs highest_floor_;                   // of these
  KeptBounds kept_;                        // to be compared; see rule 11
  std::optional<PastHolder> predecessor_;  // the record's holder at the latest check
  KeeperTime now_;
  WallMs used_;
  // Sessions; 0: none.
  int64_t connected_in_ = 0;
  int64_t check_began_in_ = 0;
  int64_t checked_in_ = 0;  // the check found the slot intact
  bool window_recorded_ = false;
  BootMs inspect_at_;
  BootMs write_at_;
  int renewals_ = 0;
  RenewalCounts counts_;
  int failures_ = 0;  // in a row

  WallMs release_bound_;
  BootMs release_until_;
  bool suspends_ = false;
  bool release_ended_ = false;

  AsyncRegistry async_registry_;
  Doing doing_ = Doing::kNothing;
  Task<> task_;
};

}  // namespace firn
