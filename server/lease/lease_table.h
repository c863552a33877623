#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/rack_split.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/lease_claim.h"
#include "registry/seam/coordinator.h"
#include "registry/state/kept_bounds.h"
#include "server/lease/kept_lease.h"
#include "server/lease/lease_bounds.h"
#include "server/lease/lease_desk.h"
#include "server/lease/lease_turns.h"

namespace firn {

struct LeaseTableOptions {
  ClaimOptions claim{};  // the server's own
  RackSplit split = RackSplit::Default(Layout::Firn());
  std::string address{};  // at which programs reach this server
  size_t leases_max = 0;  // 0: the server grants none
  std::string boot{};     // the id of this boot; empty: no lease of an earlier process is resumed
};

// The leases of one server: each is an interval of id time of a machine id, granted to a program
// that issues ids by itself. The rules, as registry/claim/WHY-LEASES-HOLD.md numbers them:
//
//  1. One claim backs one lease (LeaseClaim).
//  2. Promised is the highest end that was answered; it is raised before the answer leaves. It lies
//     at or below the claim's bound R, and at most `ahead` above the id clock.
//  4. The slot is released at promised, or, by a request that knows the last turn, above the ticks
//     used.
//  5. A token has one lease, whose first answer is repeated until it is renewed. A renewal from a
//     copy of the program revokes it; an earlier turn changes nothing, however late it arrives.
//  6. An expired lease leaves the table first; then its slot is released.
//  7. A lease whose slot is lost or another's is revoked. A bound is kept on the disk before a
//     promise below it (LeaseBounds).
//  8. A lease whose claim is not renewed any more says so, and is extended up to its bound.
// 10. At most leases_max leases, including those that were given back until their slots are
//     released, and as many of each client as it may have, without those whose claim is not renewed
//     any more; kClaimsMax claims under way. kBurst claims begin at once, then one each
//     kClaimEvery. Requests for a rack that was just found to be full begin none. A request that
//     names no rack gets a machine id of another one if the server's own is full.
// 12. A stop lowers each bound to what was promised. The next process on the same boot resumes the
//     leases whose slots still have their nonces, also after a crash. A machine that was copied
//     while it ran leaves its leases to the original.
// 13. To resume leases needs no machine id of the server's own, only a clock that was checked.
//
// A state machine, owned by the control thread: Handle, then Tick in a loop.
class LeaseTable {
 public:
  static constexpr size_t kClaimsMax = 8;
  static constexpr size_t kWaitingMax = 64;  // requests for one lease
  static constexpr int64_t kBurst = 20;
  static constexpr Milliseconds kClaimEvery{500};
  // After a claim was refused because the cluster has no machine ids for leases, others begin none
  // for this time.
  static constexpr Milliseconds kShareEvery{5'000};
  // After a claim found no free machine id in a rack, one claim for this rack begins each
  // kRackEvery, or earlier if the registry showed when one becomes free.
  static constexpr Milliseconds kRackEvery{5'000};
  static constexpr Milliseconds kFirstAhead{15'000};
  static constexpr Milliseconds kReleaseAhead{1'000};
  static constexpr Milliseconds kTickMax{5'000};
  // How long a request waits for a claim. The program then repeats it at this server.
  static constexpr Milliseconds kClaimPatience{1'000};
  static constexpr Milliseconds kRenewMin{100};  // the shortest advice on when to renew
  static constexpr char kStopping[] = "this server is stopping; use another one";
  // Why it grants none until the server's own claim was compared with the registry: the registry
  // may have lost a lease, whose machine id then looks free.
  static constexpr char kUnchecked[] =
      "this server has connected to the registry and has not checked its machine id yet";

  // The answer to a call, given inside Handle or a later Tick.
  using Done = std::function<void(LeaseReply)>;

  // The server, as of one Tick.
  struct Server {
    std::string why_not{};  // why it grants no lease now; empty: it does
    bool resumes = false;   // whether it resumes leases of an earlier process now
    std::string uuid{};     // of its cluster
    int copies = 0;         // see ClaimStatus
  };
  // `checked`: as Keeper::checked of the server's own claim. A claim that lapses since the root
  // node has changed is valid, and its server may claim machine ids under the new root node.
  static Server ServerOf(const ClaimStatus& own, bool checked);

  // All references must outlive it.
  LeaseTable(LeaseTableOptions options, Coordinator& coordinator, Entropy& entropy,
             LeaseMemory& memory, ClaimHooks hooks = {});

  void OnSession(const SessionEvent& event);
  void Handle(const LeaseCall& call, Done done);
  void Tick(const KeeperTime& now, Server server);

  // Grants and extends no further lease, and lowers the bounds of the others. Call Tick until
  // stopped() or `until`.
  void Stop(BootMs until);
  // Whether nothing is left to be done.
  bool stopped() const;

  std::vector<LeaseShown> List() const;
  LeaseCounts counts() const;
  // The highest bound of a lease, of this process or an earlier one, for `firn restore`.
  WallMs highest_bound() const;

 private:
  struct Waiting {
    Done done;
    firn::Tick until;
    BootMs since;
  };
  // A lease, or the claim for one.
  struct Lease {
    uint64_t number = 0;
    std::string id{};
    LeaseAsk ask{};
    std::unique_ptr<LeaseClaim> claim{};
    bool granted = false;
    bool answered = false;       // the grant was
    bool turn_answered = false;  // the last turn was
    firn::Tick first_until{};    // of the answer to the token
    firn::Tick until{};          // the last end that was answered, as far as it is known
    firn::Tick promised{};  // at or above every end that was answered, also by an earlier process
    bool lowered = false;   // see KeptLease
    std::string kept{};     // its text in the state folder, constant while the server runs
    LeaseTurns turns{};
    std::string revoked{};           // why; empty: it is not
    std::vector<Waiting> waiting{};  // for the claim, or for the disk
    uint32_t racks_tried = 0;

    std::string title() const;  // for messages
    const Tenure& tenure() const { return *claim->tenure(); }
    firn::Tick from() const { return tenure().claim()->first_tick(); }
  };
  // A lease that has ended, until its slot is released.
  struct Ended {
    std::unique_ptr<LeaseClaim> claim;
    LeaseShown shown;
    WallMs bound;
    bool asked = false;
  };
  // A lease of an earlier process, until it is resumed or its bound has passed.
  struct Earlier {
    KeptBound bound;
    KeptLease kept;
    MachineId machine;
    std::unique_ptr<LeaseClaim> claim{};
    BootMs retry_at{};
  };
  using Leases = std::map<std::string, std::unique_ptr<Lease>>;

  void Ask(const LeaseAsk& ask, Done done);
  void AskAgain(Lease& lease, Done done);
  void Begin(const LeaseAsk& ask, uint32_t rack, Done done);
  std::unique_ptr<LeaseClaim> ClaimFor(const Lease& lease, uint32_t rack,
                                       std::optional<LeaseClaim::Dead> resumed = {});
  // Begins a claim in another rack for a request that named none. False: there is none to try.
  bool TryAnotherRack(Lease& lease);
  // Returns the rack in which to claim; nullopt: all that may serve the request are full.
  std::optional<uint32_t> RackFor(const LeaseAsk& ask) const;
  // Handles the refusal of a lease's claim. False: the lease is over.
  bool OnRefused(Lease& lease);

  // Leases of an earlier process (lease_resume.cc).
  void LoadEarlier();
  void TickEarlier();
  bool TickOne(Earlier& earlier);
  void Resume(Earlier& earlier);
  std::string KeptText(const Lease& lease, bool with_turn) const;
  bool Suspend(Lease& lease);
  void LeaveToOriginal();
  void Renew(const LeaseRenewal& renewal, Done done);
  void End(const LeaseEnd& end, const Done& done);
  // Null after an answer: it is another server's, unknown, or revoked.
  Lease* Find(const std::string& id, const Done& done);

  // Returns the requested length, or the usual one, but at most the claim window.
  Milliseconds AheadOf(const std::optional<Milliseconds>& asked) const;
  // Minimum length of an interval: two ticks and a second.
  Milliseconds AheadMin() const;
  std::string FaultOf(const std::optional<Milliseconds>& ahead, WallMs clock) const;
  size_t turns_max() const;
  LeaseReply WhyNot(const LeaseAsk& ask);
  void Promise(Lease& lease, firn::Tick until, Done done);
  void AddWaiting(Lease& lease, Done done, firn::Tick until);
  void AnswerClaiming(Lease& lease);
  void Flush(Lease& lease);
  void Grant(Lease& lease);
  void NoteAnswered(Lease& lease);
  void Revoke(Lease& lease, std::string why);
  void Close(const std::string& id, WallMs bound);
  bool TickLease(Lease& lease);
  bool TickEnded(Ended& ended);
  firn::Tick EndFor(const Lease& lease, Milliseconds ahead) const;
  LeaseShown Shown(const Lease& lease) const;
  LeaseTerms TermsOf(const Lease& lease, firn::Tick until) const;
  void Refuse(LeaseVerdict verdict, std::string message, const Done& done);
  LeaseReply Later(std::string message);
  LeaseReply CannotKeep();
  static KeptBound BoundOf(const Lease& lease, WallMs bound, std::string kept);
  size_t claims_under_way() const;
  size_t LeasesOf(const LeaseClient& client) const;
  // Its program needs another one, so it does not count for a limit.
  static bool IsReplaced(const Lease& lease) { return lease.granted && lease.claim->ending(); }

  const Layout& layout() const { return options_.claim.layout; }

  const LeaseTableOptions options_;
  Coordinator& coordinator_;
  Entropy& entropy_;
  const ClaimHooks hooks_;
  LeaseBounds bounds_;
  KeeperTime now_{};
  Server server_{.why_not = "it has just started"};
  int64_t session_ = 0;
  std::optional<BootMs> stop_until_{};  // it stops
  std::string no_share_;                // why the cluster has no machine ids for leases
  BootMs no_share_until_;               // until when that is the answer
  // A rack without a free machine id, as the last claim found it.
  struct FullRack {
    std::string why;
    BootMs until;  // until when that is the answer
  };
  std::map<uint32_t, FullRack> full_racks_;
  BootMs claims_due_;  // when all claims so far would have begun at the pace of kClaimEvery
  // Counts from the time of the first Tick, in milliseconds. Fewer leases are granted than
  // milliseconds pass, so a later process of this server begins above.
  uint64_t last_number_ = 0;
  WallMs highest_bound_;
  Leases leases_;                                        // by id
  std::map<std::string, std::string, std::less<>> ids_;  // by token
  std::vector<Ended> ended_;
  std::map<std::string, Earlier> earlier_;  // by id
  LeaseCounts counts_;
};

}  // namespace firn
