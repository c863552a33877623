#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/id/rack_split.h"
#include "common/time/entropy.h"
#include "registry/claim/believed_clock.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/inspection.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/slot_write.h"
#include "registry/claim/survey.h"
#include "registry/claim/tenure.h"
#include "registry/seam/talk.h"
#include "registry/state/hint.h"

namespace firn {

// One try to get a claim, from the first question to the last answer. Acquire, in acquisition.cc,
// shows it in order:
//
//  1. With a grant of our own: read meta and the record. Still the grant's nonce, word, creation
//     and meta: inherit, that is, set it under a fresh nonce, with base L. Otherwise the grant is
//     of no use. Where it does not tell the time, 2 comes first.
//  2. Set the clock node: its mtime and our wall clock must agree. An id clock under which nothing
//     was given out is set to that reading.
//  3. Read meta after a sync: there, readable, ours, not frozen, floor not below what we once held.
//     The hint says what the data showed before this process started. Within its era neither the
//     root node's version nor the bound of its slot falls. In another era the floor is not below
//     the last id time, unless the slot is retired. Otherwise the data were put back while this
//     server was stopped: freeze.
//  4. Survey the rack, then try the candidates one by one, each with a nonce of its own:
//     base = max(id clock, the record's bound, floor); bound = base + probation + the first
//     window, at most a day ahead of the registry's clock (Tenure::Terms::CeilingAt).
//  5. Wait out the probation and look again. There is one without being asked for while a restored
//     root node is younger than ClaimOptions::restore_probation.
//
// All of it within one connection: the next one may lead to a registry that was wiped and made
// anew.
//
// An error found on the way is final for this try: nothing turns a refusal into a start. Owned by
// the control thread.
class Acquisition {
 public:
  static constexpr int kInheritsMax = 3;  // a dead predecessor's late write may come in between
  static constexpr int kLiveTriesMax = 3;
  static constexpr int kSurveysMax = 4;  // when others were faster at all that the last one found

  struct Wish {
    std::optional<Grant> grant{};   // ours: checked against file, boot and inode
    bool grant_tells_time = false;  // and the id clock goes by it
    std::optional<Hint> hint{};
    std::string uuid{};  // the cluster's, where it is known
    WallMs floor{};      // no claim under a meta whose floor is lower
    // Told the wall time that has just been found right; what the id clock shows from now on.
    std::function<WallMs(WallMs checked)> on_clock_checked{};
  };

  struct Won {
    Tenure::Terms terms;
    int64_t live_session = 0;
    bool inherited = false;
  };

  // `options` must outlive the object.
  Acquisition(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy, Wish wish,
              const KeeperTime& now);

  // Goes on with what has arrived and is due.
  void Tick(const KeeperTime& now);

  // There was a connection anew, perhaps of the same session. Only what was sent is followed up.
  void LoseConnection() { connection_lost_ = true; }
  bool connection_lost() const { return connection_lost_; }

  bool ended() const { return acquire_.done(); }
  // When ended, once: the claim, or why there is none.
  Result<Won> Take() { return acquire_.Take(); }
  // When refused: when to try again.
  Milliseconds retry_after() const { return retry_after_; }
  // False: the registry has shown that the wish's grant, if there was one, is of no use any more.
  bool keeps_grant() const { return wish_.grant.has_value(); }

  // What an operator should know, in sentences.
  const std::vector<std::string>& alarms() const { return alarms_; }
  // What this try heard of the registry's own clock.
  const BelievedClock& registry_clock() const { return registry_clock_; }
  // The cluster lost a claim of ours up to here.
  WallMs lost_up_to() const { return wish_.floor; }

 private:
  Task<Result<Won>> Acquire();
  Task<Result<Won>> Inherit();
  Task<Status> CheckClock();
  Task<Status> ReadRoot();
  Task<Status> TakeRoot(std::optional<Node> node);
  Task<Status> CheckHintedSlot();
  Task<Status> FreezeBehind(WallMs floor_needed, std::string why);
  Task<Result<Won>> TakeFreeSlot();
  Task<Result<Won>> Attempt(SlotChange change);
  Task<Result<Won>> OutlastProbation(Won won);

  bool MayInherit(const Finding& finding);
  SlotWish WhatToLookFor(std::optional<Slot> hinted) const;
  Result<SlotChange> Claiming(const SurveyedSlot& found);
  SlotChange ChangeOf(const SurveyedSlot& found, WallMs base, WallMs bound);
  Won WonBy(const SlotChange& change, const SlotWritten& written, Now asked);
  Status NoneFree(const Surveyed& surveyed, WallMs now);

  WallMs ClusterTime() const;
  std::string HowToMake() const;
  Milliseconds FirstWindow() const;
  Milliseconds Probation() const;
  bool IsTooFarAhead(WallMs bound) const;
  Status Refuse(std::string reason, Milliseconds retry_after);

  const ClaimOptions& options_;
  Entropy& entropy_;
  Wish wish_;
  KeeperTime now_;
  Talk talk_;

  Milliseconds retry_after_{0};
  std::vector<std::string> alarms_;
  BelievedClock registry_clock_;

  int64_t session_ = 0;  // in which the root node was read
  bool connection_lost_ = false;
  Tenure::Terms root_;  // as far as the root node goes
  std::optional<RackSplit> split_;
  Task<Result<Won>> acquire_;
};

}  // namespace firn
