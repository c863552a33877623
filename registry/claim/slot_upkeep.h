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
#include "registry/seam/talk.h"

namespace firn {

// What the holder of a slot does about it in the registry: moves the bound ahead, keeps `live`
// there, looks whether all is as it should be, and gives the slot back. One conversation at a time.
//
//  1. Nothing is written after a connection before everything was looked at: it may lead to a
//     registry that forgot us, and whose numbers have come to be the remembered ones again.
//  2. Renewed every twentieth of the window, from the remembered version; the window grows with the
//     first renewals: 15 s at the claim, then 60 s, then the whole.
//  3. A renewal that failed on meta or version, or whose outcome stays unknown: look, then decide.
//  4. Looked at after every connection and every 30 to 60 s.
//  5. Lost or rolled back: freeze, then say whether the holder may go on.
//  6. A claim whose bound has passed, after a look, is not renewed but gone: since then others may
//     have come, and have been forgotten by a registry that was rolled back. Whoever wants the slot
//     again goes through all that is asked of a claim, the probation included.
//  7. A release is a renewal with nonce zero and a lower bound; sent by Release only.
//  8. What is sent from one version bears one word (SlotRecord::word), which is in the grant before
//     it is sent. Our nonce with a word that is not ours is a copy of this process: stop.
//  9. No bound is set more than a day ahead of the registry's clock, as it is believed
//     (Tenure::Terms::CeilingAt, BelievedClock); before it is, by a short step only.
// 10. A renewal after which the bound is less than half a window ahead counts as failed.
//
// Owned by the control thread.
class SlotUpkeep {
 public:
  // What has become of the claim.
  enum class Fate {
    kHeld,     // renewals go on
    kLapsing,  // ours up to the bound, and not to be renewed
    kGone,     // stop at once; reason() says why
  };

  // What the upkeep knows about `live` from the claim itself.
  struct Live {
    int64_t session = 0;   // ours belongs to it; 0: we have none
    bool present = false;  // somebody's is there
  };

  // Puts the tenure's grant on file, with the word that is about to be sent. False: it is not
  // there, so nothing may be sent.
  using KeepGrant = std::function<bool()>;

  // The references, `tenure` included, must outlive the object.
  SlotUpkeep(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
             const ClaimHooks& hooks, Tenure& tenure, Live live, KeepGrant keep_grant, BootMs now);

  void NoteRegistryClock(const BelievedClock& clock) { registry_clock_ = clock; }
  const BelievedClock& registry_clock() const { return registry_clock_; }

  // `session` 0: not connected. `used` is the highest moment issued or about to be.
  void Tick(const KeeperTime& now, int64_t session, WallMs used);

  // There was a connection anew, perhaps of the same session: registries that are put back from a
  // backup may know sessions again, too.
  void LookAgain() { looked_in_ = look_began_in_ = 0; }

  Fate fate() const { return fate_; }
  const std::string& reason() const { return reason_; }
  RenewalCounts renewals() const { return counts_; }
  // The cluster forgot this claim.
  bool lost() const { return lost_; }

  // Gives the slot back with `bound`, which must lie above everything issued. Tick until released.
  void Release(WallMs bound, BootMs until);
  // Acknowledged, not ours any more, or waited long enough.
  bool release_ended() const { return release_ended_; }

 private:
  enum class Doing { kNothing, kWriting, kLooking };

  Doing WhatIsDue();
  void Begin(Doing what);
  Task<> Write();
  // What a renewal was sent with.
  struct Asked {
    Now at;
    WallMs from;  // as far as ids and the cluster had come
    Milliseconds window;
  };
  void NoteRenewed(const SlotChange& change, const SlotWritten& written, const Asked& asked);
  void HearClock(WallMs shown, Now asked);
  Task<> Look();
  void NoteOurs(const Finding& finding);
  Task<> FreezeOut();
  SlotChange Change(const Nonce& word) const;
  WallMs NeededFrom() const;
  WallMs WantedBound() const;
  void AlarmOf(const Finding& finding);
  void TellNews();
  void Retry();
  Milliseconds Pause();
  void EndRelease(std::string reason);
  std::optional<PastHolder> Ended() const;
  Milliseconds NextWindow() const;
  bool releasing() const { return release_until_ != BootMs(); }

  const ClaimOptions& options_;
  Entropy& entropy_;
  const ClaimHooks& hooks_;
  Tenure& tenure_;
  Live live_;
  const KeepGrant keep_grant_;
  BelievedClock registry_clock_;
  // For the hooks, which are called when no task runs.
  std::vector<std::string> alarms_;
  std::string alarmed_;  // of the loss that was found last
  bool clock_is_news_ = false;

  Fate fate_ = Fate::kHeld;
  std::string reason_;
  bool lost_ = false;
  std::optional<PastHolder> predecessor_;  // whom the record named when it was looked at last
  KeeperTime now_;
  WallMs used_;
  // Sessions; 0: none.
  int64_t connected_in_ = 0;
  int64_t look_began_in_ = 0;
  int64_t looked_in_ = 0;  // everything was as it should be
  BootMs inspect_at_;
  BootMs write_at_;
  int renewals_ = 0;
  RenewalCounts counts_;
  int failures_ = 0;  // in a row

  WallMs release_bound_;
  BootMs release_until_;
  bool release_ended_ = false;

  Talk talk_;
  Doing doing_ = Doing::kNothing;
  Task<> task_;
};

}  // namespace firn
