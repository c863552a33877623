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
#include "registry/seam/async_registry.h"
#include "registry/state/hint.h"
#include "registry/state/kept_bounds.h"

namespace firn {

// One attempt to get a claim, from the first request to the last answer. Acquire, in
// acquisition.cc, shows the steps in order:
//
//  1. With a grant of our own: read the root node and the record. If both still have the grant's
//     nonce, word, creation and root version: inherit, that is, set the record under a new nonce,
//     with base L. Otherwise drop the grant. If the grant's clock pair is not valid, 2 comes first.
//  2. Set the clock node: its mtime and our wall clock must agree. If no id was issued yet, the id
//     clock is set to that reading.
//  3. Read the root node after a sync: it must be present, readable, of our cluster and not frozen,
//     with a floor at or above every bound of ours that the cluster has lost.
//     The hint says what the data showed before this process started. Within its era neither the
//     root node's version nor the bound of its slot falls. In another era the floor is not below
//     the last id time, unless the slot is retired. Nor does a bound fall under which a program
//     may still issue by itself (KeptBounds). Otherwise the data were put back while this server
//     was stopped: freeze.
//  4. Survey the rack, then try the candidates one by one, each with a new nonce:
//     base = max(id clock, the record's bound, floor); bound = base + probation + the first
//     window, at most a day ahead of the registry's clock (Tenure::Terms::CeilingAt).
//  5. Wait out the probation and check the slot. While a restored root node is younger than
//     ClaimOptions::restore_probation, there is always a probation.
//
// All of it happens within one connection: the next one may lead to a registry that was wiped and
// re-created.
//
// Every error is final for this attempt: a refusal never becomes a start. Owned by the control
// thread.
class Acquisition {
 public:
  static constexpr int kInheritsMax = 3;  // a dead predecessor's late write may intervene
  static constexpr int kLiveTriesMax = 3;
  static constexpr int kSurveysMax = 4;  // repeated if others took all candidates
  static constexpr Milliseconds kRetrySoon{200}, kRetryLater{2'000}, kRetryMax{5'000};

  struct Input {
    std::optional<Grant> grant{};   // ours: checked against file, boot and inode
    bool grant_tells_time = false;  // its clock pair has set the id clock
    std::optional<Hint> hint{};
    KeptBounds kept{};   // of leases, as the state folder had them at the start
    std::string uuid{};  // the cluster's, if it is known
    WallMs floor{};      // no claim under a root node with a lower floor
    // The claim that this process held last; before its first claim, the grant's. The registry may
    // no longer contain it. It lists offline holders, which a new claim of the slot names as past
    // holders.
    std::optional<Tenure::Terms> last_claim{};
    // Holdings of this process that ended when another one, such as a copy of it, took the slot:
    // the registry does not name them.
    std::vector<PastHolder> overtaken{};
    Slot overtaken_in{};
    // Called with a wall time that has just been checked; returns the id clock's time.
    std::function<WallMs(WallMs checked)> on_clock_checked{};
  };

  struct Won {
    Tenure::Terms terms;
    int64_t live_session = 0;
    bool inherited = false;
  };

  // `options` must outlive the object.
  Acquisition(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy, Input input,
              const KeeperTime& now);

  // Continues with the answers that have arrived and everything that is due.
  void Tick(const KeeperTime& now);

  // Notes a reconnection, even in the same session. Only the outcome of writes already sent is
  // still determined.
  void LoseConnection() { connection_lost_ = true; }
  bool connection_lost() const { return connection_lost_; }

  bool ended() const { return acquire_.done(); }
  // Returns, once, after the end: the claim, or why there is none.
  Result<Won> Take() { return acquire_.Take(); }
  // After a refusal: when to retry.
  Milliseconds retry_after() const { return retry_after_; }
  // Whether a lease was refused because the cluster has no machine ids for leases.
  bool lacks_share() const { return lacks_share_; }
  // Whether the rack has no free machine id.
  bool none_free() const { return none_free_; }
  // Whether the input's overtaken holdings are in the slot's past.
  bool named_overtaken() const { return named_overtaken_; }
  // Whether the input has a grant that the registry has not contradicted.
  bool keeps_grant() const { return input_.grant.has_value(); }

  // Alarms for operators, as sentences.
  const std::vector<std::string>& alarms() const { return alarms_; }
  // The registry's clock, as read in this attempt.
  const BelievedClock& registry_clock() const { return registry_clock_; }
  // The highest bound of ours that the cluster has lost.
  WallMs lost_up_to() const { return input_.floor; }

 private:
  Task<Result<Won>> Acquire();
  Task<Result<Won>> Inherit();
  Task<Status> CheckClock();
  Task<Status> ReadRoot();
  Task<Status> TakeRoot(std::optional<Node> node);
  Task<Status> CheckHintedSlot();
  Task<Status> CheckKeptBounds();
  Task<Status> FreezeBehind(WallMs floor_needed, std::string why);
  Task<> NameOvertaken();
  Task<Result<Won>> TakeFreeSlot();
  Task<Result<Won>> Attempt(SlotChange change);
  Task<Result<Won>> WaitOutProbation(Won won);

  bool MayInherit(const Finding& finding);
  SlotQuery MakeQuery(std::optional<Slot> hinted) const;
  Result<SlotChange> Claiming(const SurveyedSlot& found);
  SlotChange ChangeOf(const SurveyedSlot& found, WallMs base, WallMs bound);
  Won WonBy(const SlotChange& change, const SlotWritten& written, Now asked);
  Status RefuseNoneFree(const Surveyed& surveyed, WallMs now);

  WallMs ClusterTime() const;
  std::string HowToCreate(const std::string& missing) const;
  Milliseconds FirstWindow() const;
  Milliseconds Probation() const;
  bool IsTooFarAhead(WallMs bound) const;
  Status Refuse(std::string reason, Milliseconds retry_after);

  const ClaimOptions& options_;
  Entropy& entropy_;
  Input input_;
  KeeperTime now_;
  AsyncRegistry async_registry_;

  Milliseconds retry_after_{0};
  std::vector<std::string> alarms_;
  BelievedClock registry_clock_;

  int64_t session_ = 0;  // the session in which the root node was read
  bool connection_lost_ = false;
  Tenure::Terms root_;  // the members that come from the root node
  std::optional<RackSplit> split_;
  int64_t lease_share_ = 0;  // of the cluster, in percent
  bool lacks_share_ = false;
  bool none_free_ = false;
  bool named_overtaken_ = false;
  Task<Result<Won>> acquire_;
};

}  // namespace firn
