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
  std::string address{};  // this server's address for programs
  size_t leases_max = 0;  // 0: the server grants no leases
  std::string boot{};     // this boot's id; empty: leases of an earlier process are not resumed
};

// The leases of one server. Each grants a machine id, for an interval of id time, to a program that
// issues ids by itself. The rules have the numbers of registry/claim/WHY-LEASES-HOLD.md:
//
//  1. One claim backs one lease (LeaseClaim).
//  2. The promised end is the highest end returned to the program; it is raised before the answer
//     is sent. It is at most the claim's bound R, and at most `ahead` above the id clock.
//  4. The slot is released at the promised end. A request that knows the last turn can release it
//     earlier, above the highest tick used.
//  5. A token identifies one lease. Requests with the token get the same first answer until the
//     lease is renewed. A renewal from a copy of the program revokes the lease. A request with an
//     earlier turn has no effect, however late it arrives.
//  6. An expired lease is removed from the table before its slot is released.
//  7. A lease is revoked if its slot is lost or another server has claimed it. A bound is on disk
//     before any promise below it (LeaseBounds).
//  8. A lease whose claim is no longer renewed is reported as ending, and can be extended up to its
//     bound.
// 10. Limits: leases_max leases for the server, and the client's own limit for each client. A
//     returned lease counts until its slot is released; a lease whose claim is no longer renewed
//     does not count. At most kClaimsMax claims are under way. kBurst claims can begin at once,
//     then one per kClaimEvery. A request for a rack that was recently full begins no claim. If the
//     server's own rack is full, a request that names no rack gets a machine id of another rack.
// 12. A stop lowers each bound to the promised end. The next process on the same boot resumes the
//     leases whose slots still have their nonces, also after a crash. The copy of a running machine
//     leaves the leases to the original.
// 13. A server can resume leases without a machine id of its own. It only needs a checked clock.
//
// A state machine, owned by the control thread: Handle, then Tick in a loop.
class LeaseTable {
 public:
  static constexpr size_t kClaimsMax = 8;
  static constexpr size_t kWaitingMax = 64;  // waiting requests for one lease
  static constexpr int64_t kBurst = 20;
  static constexpr Milliseconds kClaimEvery{500};
  // If a claim was refused because the cluster has no machine ids for leases, other requests begin
  // no claim for this time.
  static constexpr Milliseconds kShareEvery{5'000};
  // After a claim found a rack full, one claim for this rack begins per kRackEvery, or earlier if
  // the registry showed when a machine id becomes free.
  static constexpr Milliseconds kRackEvery{5'000};
  static constexpr Milliseconds kFirstAhead{15'000};
  static constexpr Milliseconds kReleaseAhead{1'000};
  static constexpr Milliseconds kTickMax{5'000};
  // How long a request waits for a claim. After that the program has to repeat it at this server.
  static constexpr Milliseconds kClaimPatience{1'000};
  static constexpr Milliseconds kRenewMin{100};  // minimum of LeaseGrant::renew_in
  static constexpr char kStopping[] = "this server is stopping; use another one";
  // Refusal until the server's own claim has been compared with the registry: the registry may have
  // lost a lease, whose machine id then looks free.
  static constexpr char kUnchecked[] =
      "this server has connected to the registry and has not checked its machine id yet";

  // Receives the answer to a call, inside Handle or a later Tick.
  using Done = std::function<void(LeaseReply)>;

  // The server's state at one Tick.
  struct Server {
    std::string why_not{};  // why it grants no leases now; empty: it grants them
    bool resumes = false;   // whether leases of an earlier process can be resumed now
    std::string uuid{};     // of its cluster
    int copies = 0;         // see ClaimStatus
  };
  // `checked` is Keeper::checked of the server's own claim. A claim that lapses because the root
  // node has changed is still valid, and its server may claim machine ids under the new root node.
  static Server ServerOf(const ClaimStatus& own, bool checked);

  // All references must outlive the object.
  LeaseTable(LeaseTableOptions options, Coordinator& coordinator, Entropy& entropy,
             LeaseMemory& memory, ClaimHooks hooks = {});

  void OnSession(const SessionEvent& event);
  void Handle(const LeaseCall& call, Done done);
  void Tick(const KeeperTime& now, Server server);

  // Stops granting and extending leases, and lowers their bounds. Call Tick until stopped() or
  // `until`.
  void Stop(BootMs until);
  // Returns whether the stop is complete.
  bool stopped() const;

  std::vector<LeaseShown> List() const;
  LeaseCounts counts() const;
  // Returns the highest bound of a lease of this process or an earlier one, for `firn restore`.
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
    bool answered = false;       // whether the grant was
    bool turn_answered = false;  // whether the last turn was
    firn::Tick first_until{};    // the end in the answer to the token
    firn::Tick until{};          // the last end returned, if known
    firn::Tick promised{};       // at or above every end returned, also by an earlier process
    bool lowered = false;        // see KeptLease
    std::string kept{};          // its line in the state folder, constant until a stop
    LeaseTurns turns{};
    std::string revoked{};           // why it is revoked; empty: it is valid
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
  // Begins a claim in another rack if the request named none. Returns false if no rack is left to
  // try.
  bool TryAnotherRack(Lease& lease);
  // Returns the rack in which to claim; nullopt if all racks that the request permits are full.
  std::optional<uint32_t> RackFor(const LeaseAsk& ask) const;
  // Handles the refusal of a lease's claim. Returns false if the lease is over.
  bool OnRefused(Lease& lease);

  // Leases of an earlier process (lease_resume.cc).
  void LoadEarlier();
  void TickEarlier();
  bool TickOne(Earlier& earlier);
  void Resume(Earlier& earlier);
  std::string KeptText(const Lease& lease, bool with_turn) const;
  void KeepForNext(Lease& lease);
  bool Suspend(Lease& lease);
  void LeaveToOriginal();
  void Renew(const LeaseRenewal& renewal, Done done);
  void End(const LeaseEnd& end, const Done& done);
  // Returns the valid lease. Otherwise it answers the call and returns null: the lease is another
  // server's, unknown or revoked.
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
  LeaseGrant TermsOf(const Lease& lease, firn::Tick until) const;
  void Refuse(LeaseVerdict verdict, std::string message, const Done& done);
  LeaseReply Later(std::string message);
  LeaseReply CannotKeep();
  static KeptBound BoundOf(const Lease& lease, WallMs bound, std::string kept);
  size_t claims_under_way() const;
  size_t LeasesOf(const LeaseClient& client) const;
  // The program has to replace an ending lease by another one, so it does not count for a limit.
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
  std::optional<BootMs> stop_until_{};  // set: the server is stopping
  std::string no_share_;                // why the cluster has no machine ids for leases
  BootMs no_share_until_;               // until then no_share_ is the answer
  // A rack in which the last claim found no free machine id.
  struct FullRack {
    std::string why;
    BootMs until;  // until then `why` is the answer
  };
  std::map<uint32_t, FullRack> full_racks_;
  BootMs claims_due_;  // when all claims so far would have begun at one per kClaimEvery
  // Starts at the wall clock of the first Tick, in milliseconds. Leases are granted less often than
  // once per millisecond, so a later process of this server starts with a higher number.
  uint64_t last_number_ = 0;
  WallMs highest_bound_;
  Leases leases_;                                        // by id
  std::map<std::string, std::string, std::less<>> ids_;  // by token
  std::vector<Ended> ended_;
  std::map<std::string, Earlier> earlier_;  // by id
  LeaseCounts counts_;
};

}  // namespace firn
