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
  VirtualClock& clock;  // the true time
  HostClock& registry_clock;
  MemoryTree& tree;
  IssueOracle& oracle;
  ClaimBook& book;
  SeededEntropy& dice;
  const FaultRates& rates;
  Mutant mutant = Mutant::kNone;
  bool judging = true;  // check every invariant, not only those of the oracle
  bool trace = false;
  bool strict = false;       // clock policy of all hosts
  bool probes = false;       // take an id in each round, to check the reported readiness
  bool generations = false;  // a copied machine detects that it is a copy
  bool tags = false;         // processes also follow tags
  bool gap = false;          // the registry has lost data and is not restored yet
  int64_t claims = 0;        // adopted so far
  int64_t pids = 0;          // processes so far
  // Sessions and their end times. A session does not end if its host was only disconnected and
  // reconnects in time.
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
  // Kills the process. Its session and its late writes remain (ghost_).
  void Kill();
  void Reboot();
  // Kills the process and returns the disk to an earlier state.
  void LoseDisk();
  void Stop();  // a clean stop, which takes some rounds
  // Runs a round of the control loop. The process may die in it, if requested.
  void Step();
  // Takes up to `want` ids.
  void Issue(uint64_t want);
  // Pauses the process after it has read the clocks. It continues with these readings.
  void PauseInStep();
  void DieSoon();
  // Runs `meanwhile` before the process sends its next claim or renewal.
  void StopBeforeNextClaimOrRenewal(SeamCoordinator::Meanwhile meanwhile);
  void RunGhost();

  // --- copies of it (sim_twin.cc) ---------------------------------------------------------------
  // Keeps `copy` in the state of each process that starts here, until TakeSnapshot.
  void KeepCopyIn(SimHost& copy) { copy_ = &copy; }
  // Returns whether the running process has a copy and holds a claim.
  bool has_copy() const;
  // Freezes the copy in its present state and returns it.
  SimHost& TakeSnapshot();
  // Continues the copy, as a machine that does not know how long it was paused.
  void Resume(Milliseconds slept, BootMs clock_right_at);
  // Returns whether a copy may continue with the same claim.
  bool in_doubt() const { return doubt_.has_value(); }

  bool running() const { return process_ != nullptr; }
  // Null while it holds no claim.
  const Tenure* tenure() const { return running() ? process_->keeper.tenure() : nullptr; }
  bool Serves();  // returns whether it can issue an id now
  bool renews() const { return running() && process_->keeper.state() == ClaimState::kHolding; }
  int64_t session() const;
  void Disconnect();
  void Reconnect();
  void EndFaults();  // ends the faults of its connection
  // Fails the registry's servers with all requests in flight. The process reconnects later.
  void LoseConnection();
  // Returns whether its process can read the registry.
  bool can_look() const {
    return connected() && !process_->stale_time.has_value() && paused_until <= shared_.clock.Boot();
  }
  bool connected() const { return running() && process_->link->connected(); }
  std::string Status();

  SimDisk& disk() { return disk_; }
  HostClock& clock() { return clock_; }
  int index() const { return index_; }
  uint32_t rack() const { return options_.rack; }
  // Returns the process's report to an operator, or nullopt if no process runs.
  std::optional<ProviderReport> Report() const;
  // Returns how far a wrong wall clock ever led the id clock of this host ahead of the true time.
  // Alarms have reported it.
  Milliseconds skew() const { return skew_; }
  // Returns how far its id clock is ahead of its wall clock now.
  Milliseconds Lead();
  // Returns the time from its id clock to its bound.
  Milliseconds Left();
  BootMs paused_until{};

 private:
  struct Process {
    // A process without a connection mirrors another one.
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
    BootMs claims_since{};      // true time at which its present or last claim attempt began
    std::optional<KeeperTime> stale_time{};
    std::optional<Now> stale_read{};        // clock readings of a paused call
    std::optional<BootMs> refused_since{};  // since when every check was refused
    WallMs excused{};                       // exemption of its claim, from the book
    WallMs limit{};                         // the keeper's limit at its last Tick
    int64_t alarms = 0;  // number of its alarms, and of those before its present claim
    int64_t old_alarms = 0;
  };

  // A claim that two copies of a machine hold, with the words that both copies know.
  struct Doubt {
    Nonce nonce;
    Nonce word;
    Nonce pending_word;
    WallMs bound;  // the highest bound that both copies can reach

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
  WallMs highest_bound_;  // highest bound of any process on this host, for the witness
  Milliseconds skew_{0};
  // Permitted lead over the true time, because claims of this boot had to begin ahead or took long.
  Milliseconds led_{0};
  std::unique_ptr<Process> process_;
  SimHost* copy_ = nullptr;
  std::optional<Doubt> doubt_;
  std::unique_ptr<FaultyCoordinator> ghost_;  // of the last process: its requests may still arrive
};

}  // namespace firn
