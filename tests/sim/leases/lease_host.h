#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "registry/claim/claim_keeper.h"
#include "registry/servers/provider.h"
#include "registry/state/grant_file.h"
#include "registry/state/kept_bounds.h"
#include "server/lease/lease_table.h"
#include "tests/sim/copies/sim_mirror.h"
#include "tests/sim/leases/lease_shared.h"
#include "tests/sim/leases/lease_twins.h"
#include "tests/sim/mutants.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_state_folder.h"
#include "tests/support/sequenced_user.h"

namespace firn {

// A server's state folder, which outlives its processes.
struct LeaseDisk {
  MemoryDisk claims{};     // grant and hint
  std::string leases{};    // the bounds of leases
  std::string promised{};  // bounds that must be on the disk; a mutant may not have written them
  bool stalled = false;    // writes of bounds do not complete
  bool fails = false;
};

// A machine and the server that may run on it, with the server's machine id and leases.
//
// The machine can be copied while it runs. Therefore a second process is kept in exactly the state
// of the first (SimMirror).
class LeaseHost {
 public:
  LeaseHost(LeaseShared& shared, int index, ClaimOptions claim, size_t leases_max);
  ~LeaseHost();

  // The address for programs, which all copies of a server share.
  const std::string& address() const { return address_; }
  bool running() const { return process_ != nullptr; }

  // --- its life ---------------------------------------------------------------------------------
  void Start(bool connected);
  // Kills the process, like kill -9. Its session remains, and its requests may still arrive.
  void Kill();
  // Begins a clean stop, like SIGTERM. It needs further rounds.
  void Stop();
  // Runs a round of its control loop, and issues an id if it may.
  void Round();
  // Pauses the process after it has read the clocks. Its next round uses these readings.
  void PauseInStep();
  void Disconnect();
  void Reconnect();
  bool connected() const { return running() && process_->link->connected(); }
  int64_t session() const;
  // Fails the registry's servers with all requests in flight. The server reconnects later.
  void LoseConnection();
  void EndFaults();

  // --- copies of it (lease_host_copy.cc) --------------------------------------------------------
  // Returns a sleeping copy of the running machine; null if there is none.
  std::unique_ptr<LeaseHost> Copy();
  // Resumes the copy, which does not know how long it was paused.
  void Resume(Milliseconds slept, BootMs clock_right_at);
  // Returns another machine on which a server starts with a copy of the state folder.
  std::unique_ptr<LeaseHost> CopyFolder();
  // The claims and leases that its process holds now, as text.
  std::set<std::string> Claims() const;

  // The process's report to an operator; nullopt: no process runs.
  std::optional<ProviderReport> Report() const;

  // --- its leases -------------------------------------------------------------------------------
  // Must be called only while it runs. `done` is dropped if the process ends first.
  void Call(const LeaseCall& call, LeaseTable::Done done);
  size_t leases_max() const { return leases_max_; }
  // Returns whether a bound of a lease on its disk is after `time`.
  bool HasPromisedAfter(WallMs time) const;
  // Returns whether it has granted a lease to the program with this name.
  bool HasLeaseOf(const std::string& name) const;
  // The bounds of leases that its next process reads.
  std::vector<KeptBound> KeptLeases() const;

  LeaseDisk& disk() { return disk_; }
  HostClock& clock() { return clock_; }
  BootMs paused_until{};

 private:
  // Numbers the claims that it adopts. A mirror's claims have no number until it is copied.
  class User final : public SequencedUser {
   public:
    User(LeaseShared& shared, const Clock& clock, uint64_t seed)
        : SequencedUser(clock, {}, seed, {.registry_has_clock = true}), shared_(shared) {}
    void Adopt(std::shared_ptr<Claim> claim) override {
      SequencedUser::Adopt(std::move(claim));
      if (numbers) number_ = ++shared_.named;
    }
    void CountAs(int64_t number) { number_ = number; }
    int64_t number() const { return number_; }

    bool numbers = true;

   private:
    LeaseShared& shared_;
    int64_t number_ = 0;
  };

  // The bounds on the disk; each write ends in a later round.
  class Memory final : public LeaseMemory {
   public:
    Memory(LeaseDisk& disk, LeaseMutant mutant) : disk_(disk), mutant_(mutant) {}
    void Keep(std::string text, Kept done) override;
    void Round();

   private:
    LeaseDisk& disk_;
    const LeaseMutant mutant_;
    std::string text_;
    Kept done_;
  };

  struct Process {
    // Without a connection, it mirrors another process.
    Process(LeaseHost& host, uint64_t seed, std::unique_ptr<FaultyCoordinator> connection);

    SeededEntropy entropy;
    User user;
    std::unique_ptr<FaultyCoordinator> link;
    SimMirror mirror;
    LeaseWords words;
    SeamCoordinator seam;
    MemoryStateFolder folder;
    Memory memory;
    ClaimKeeper keeper;
    LeaseTable table;
    bool stopping = false;
    BootMs stop_until{};
    std::optional<KeeperTime> stale_time{};
    BootMs started{};
    KeptBounds kept{};       // the bounds that it read, or would have read without a mutant
    int64_t own_number = 0;  // number of the claim of `own`
    LeaseOracle::Holder own = 0;
  };

  static std::unique_ptr<FaultyCoordinator> NewLink(LeaseHost& host);
  bool mirrors() const { return running() && process_->link == nullptr; }
  std::unique_ptr<LeaseHost> Another() const;
  void KeepCopy(uint64_t seed);
  LeaseHost* InStep();
  std::optional<Grant> GrantOnDisk() const;
  void ShareClaims() const;
  KeeperTime Read() { return {clock_.Read(), process_->user.Time()}; }
  LeaseTableOptions LeasesOf() const;
  ClaimHooks Hooks();
  void TickAll(const KeeperTime& now);
  void Issue();
  void JudgeLosses() const;
  void End();
  void ForgetTurns() const;
  void FreeSlots();
  void Trace(const std::string& what) const;

  LeaseShared& shared_;
  const int index_;
  const ClaimOptions claim_;
  const size_t leases_max_;
  const std::string address_;
  const int number_;  // among all machines
  std::string name_;  // in traces
  LeaseDisk disk_;
  HostClock clock_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<LeaseHost> second_;         // mirrors this one
  std::unique_ptr<FaultyCoordinator> ghost_;  // of the previous process
};

}  // namespace firn
