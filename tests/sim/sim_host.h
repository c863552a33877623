#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "registry/claim/claim_keeper.h"
#include "registry/servers/provider.h"
#include "tests/sim/copies/sim_mirror.h"
#include "tests/sim/mutants.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/sim_user.h"
#include "tests/sim/tags/host_tags.h"
#include "tests/sim/witness.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// State that all hosts of a simulation share. Owned by the world.
struct SimShared {
  VirtualClock& clock;  // the truth
  HostClock& registry_clock;
  MemoryTree& tree;
  IssueOracle& oracle;
  ClaimBook& book;
  SeededEntropy& dice;
  const FaultRates& rates;
  Mutant mutant = Mutant::kNone;
  bool judging = true;  // every invariant is checked, not only the oracle's
  bool trace = false;
  bool strict = false;  // clock policy of all
  bool probes = false;  // an id is taken in each round, to compare it with the reported readiness
  bool generations = false;  // a copied machine sees that it is one
  bool tags = false;         // processes follow tags beside their claims
  bool gap = false;          // the registry lost data, and was not restored yet
  int64_t claims = 0;        // adopted so far
  int64_t pids = 0;          // processes so far
  // Sessions and when they end, unless their host was only cut off and reconnects.
  std::vector<std::pair<int64_t, BootMs>> expiring{};

  void Trace(const std::string& what) const;

  // A registry ends a session some time after its timeout.
  void ExpireLater(int64_t session) {
    const Milliseconds after(10'000 + static_cast<int64_t>(dice.Below(5'000)));
    if (session != 0) expiring.emplace_back(session, clock.Boot() + after);
  }
};

// One machine and the process that may run on it.
class SimHost {
 public:
  SimHost(SimShared& shared, int index, ClaimOptions options, SequencerOptions sequencer);
  ~SimHost();

  // --- its life ---------------------------------------------------------------------------------
  void Start(bool connected);
  // The process ends at once; its session remains, and so do its late writes, in ghost().
  void Kill();
  void Reboot();
  // Its disk is lost, with the process on it, and returns in an earlier state.
  void LoseDisk();
  void Stop();  // cleanly: takes some rounds
  // Runs a round of its control loop; the process may die in it on demand.
  void Step();
  // Takes up to `want` ids.
  void Issue(uint64_t want);
  // Continues a paused call: the clocks were read and a tick computed before the pause.
  void PauseInStep();
  void DieSoon();
  // Runs this before its process sends the next request; the process learns of it later.
  void StopBeforeNextClaimOrRenewal(SeamCoordinator::Meanwhile meanwhile);
  void RunGhost();

  // --- copies of it (sim_twin.cc) ---------------------------------------------------------------
  // `copy` is kept in the state of each process that starts here, until it is told to differ.
  void KeepCopyIn(SimHost& copy) { copy_ = &copy; }
  // Whether there is a copy of the running process, and it holds a claim.
  bool has_copy() const;
  // The copy stays in its present state, asleep.
  SimHost& TakeSnapshot();
  // The copy continues, as a machine that does not know for how long it slept.
  void Resume(Milliseconds slept, BootMs clock_right_at);
  // Whether a copy exists that may continue with its claim.
  bool in_doubt() const { return doubt_.has_value(); }

  bool running() const { return process_ != nullptr; }
  // Null while it holds no claim.
  const Tenure* tenure() const { return running() ? process_->keeper.tenure() : nullptr; }
  bool Serves();  // tries to take one id
  bool renews() const { return running() && process_->keeper.state() == ClaimState::kHolding; }
  int64_t session() const;
  void Disconnect();
  void Reconnect();
  void EndFaults();  // of its connection
  // The registry's servers go down with all requests in flight; it reconnects later.
  void LoseConnection();
  // No fault keeps its process from reading the registry.
  bool can_look() const {
    return connected() && !process_->stale_time.has_value() && paused_until <= shared_.clock.Boot();
  }
  bool connected() const { return running() && process_->link->connected(); }
  std::string Status();

  SimDisk& disk() { return disk_; }
  HostClock& clock() { return clock_; }
  int index() const { return index_; }
  uint32_t rack() const { return options_.rack; }
  // Its process's report for an operator; nothing if there is no process.
  std::optional<ProviderReport> Report() const;
  // How far ahead of the truth any id clock here ever was: alarms reported it.
  Milliseconds skew() const { return skew_; }
  // How far its id clock is ahead of its wall clock now.
  Milliseconds Lead();
  // From its id clock to its bound.
  Milliseconds Left();
  BootMs paused_until{};

 private:
  struct Process {
    // Without a link it mirrors another process.
    Process(SimHost& host, uint64_t seed, int64_t pid,
            std::unique_ptr<FaultyCoordinator> connection);

    const int64_t pid;
    SimStateFolder folder;
    SeededEntropy honest;
    StuckEntropy stuck;
    SimUser user;
    std::unique_ptr<FaultyCoordinator> link;
    SimMirror mirror;
    SeamCoordinator seam;
    ClaimKeeper keeper;
    std::optional<HostTags> tags;
    std::optional<Grant> start_permit;
    int64_t checked_claim = 0;  // the claim whose base was checked
    BootMs claims_since{};      // the truth's, of its present or last attempt
    std::optional<KeeperTime> stale_time{};
    std::optional<Now> stale_read{};        // a paused call's reading of the clocks
    std::optional<BootMs> refused_since{};  // at every check since then
    WallMs excused{};                       // of its claim, by the book
    WallMs limit{};                         // of the keeper, as of its last Tick
    int64_t alarms = 0;  // that it has raised, and of those before its present claim
    int64_t old_alarms = 0;
  };

  // A claim that two copies of a machine know, with the words that both of them had.
  struct Doubt {
    Nonce nonce;
    Nonce word;
    Nonce pending_word;
    WallMs bound;  // the highest that both of them can reach

    bool BothKnow(const Nonce& of_record) const {
      return of_record == word || (!pending_word.zero() && of_record == pending_word);
    }
  };

  static std::unique_ptr<FaultyCoordinator> NewLink(SimHost& host);
  ClaimOptions OptionsOf(int64_t pid) const;
  KeeperTime Read();
  void TickKeeper(const KeeperTime& now);
  void JudgeEnd(const KeeperTime& now, WallMs bound);
  Verdict Take(uint64_t want);
  void TakeAt(const Now& then, uint64_t want);
  void JudgeReadiness(const KeeperTime& now);
  void JudgeTags() const;

  void Follow(const SimHost& first, uint64_t seed);
  SimHost* Follower();
  void ForgetCopy();
  void LookForTwin(const Tenure& tenure);

  void LookAtClaim();
  void JudgeIdClock(WallMs id_time) const;
  void JudgeNewClaim(const Tenure& tenure, const ClaimBook::Entry& entry);
  ClaimHooks Hooks(Process& process);
  void Record();
  void Trace(const std::string& what) const;

  SimShared& shared_;
  const int index_;
  const ClaimOptions options_;
  const SequencerOptions sequencer_;
  SimDisk disk_;
  HostClock clock_;
  WallMs highest_bound_;  // of any process here, for the witness
  Milliseconds skew_{0};
  // The lead over the truth, by claims of this boot that had to begin there or took long.
  Milliseconds led_{0};
  std::unique_ptr<Process> process_;
  SimHost* copy_ = nullptr;
  std::optional<Doubt> doubt_;
  std::unique_ptr<FaultyCoordinator> ghost_;  // of the last process: its requests may still arrive
};

}  // namespace firn
