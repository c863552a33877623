#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/entropy.h"
#include "registry/claim/claim_keeper.h"
#include "registry/faulty_coordinator.h"
#include "registry/provider.h"
#include "tests/sim/mutants.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_disk.h"
#include "tests/sim/witness.h"
#include "tests/support/sequenced_user.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// What all hosts of a simulation share. Owned by the world.
struct SimShared {
  VirtualClock& clock;  // the truth
  MemoryTree& tree;
  IssueOracle& oracle;
  ClaimBook& book;
  SeededEntropy& dice;
  const FaultRates& rates;
  Mutant mutant = Mutant::kNone;
  bool judging = true;  // every invariant counts, not only the oracle's
  bool trace = false;
  bool gap = false;    // the registry lost data, and no operator has restored it yet
  int64_t claims = 0;  // adopted so far
  // Sessions and when they end, unless their host was only cut off and is heard of again.
  std::vector<std::pair<int64_t, BootMs>> expiring{};

  void Trace(const std::string& what) const;

  // A registry ends a session some time after its time-out.
  void ExpireLater(int64_t session) {
    const Milliseconds after(10'000 + static_cast<int64_t>(dice.Below(5'000)));
    if (session != 0) expiring.emplace_back(session, clock.Boot() + after);
  }
};

// A machine's clocks, derived from the truth: a wall clock that is off, runs at its own pace and
// may be set, and a boot clock that begins anew with each boot.
class HostClock final : public Clock {
 public:
  explicit HostClock(const Clock& truth) : truth_(truth) {}

  WallMs Wall() const override;
  BootMs Boot() const override { return BootMs((truth_.Boot() - booted_).count() + kFirstMs); }

  void StepWall(Milliseconds by) { offset_ms_ += by.count(); }
  void SetPace(int64_t parts_per_million);
  void SetRight();
  void Reboot() { booted_ = truth_.Boot(); }

 private:
  static constexpr int64_t kFirstMs = 10'000;

  const Clock& truth_;
  BootMs booted_;
  BootMs paced_;
  int64_t offset_ms_ = 0;
  int64_t parts_per_million_ = 0;
};

// The issuing side of a process, with the oracle at its elbow.
class SimUser final : public SequencedUser {
 public:
  SimUser(SimShared& shared, const Clock& clock, SequencerOptions options, uint64_t seed)
      : SequencedUser(clock, options, seed), shared_(shared) {}

  void Adopt(std::shared_ptr<Claim> claim) override {
    SequencedUser::Adopt(std::move(claim));
    number_ = ++shared_.claims;
  }
  Tick Last() const override { return Told(SequencedUser::Last()); }
  Tick Close() override { return Told(SequencedUser::Close()); }
  int64_t number() const { return number_; }

 private:
  Tick Told(Tick last) const {
    const bool lies = shared_.mutant == Mutant::kReleaseToLast && last >= claim().first_tick();
    return lies ? last - 1 : last;
  }

  SimShared& shared_;
  int64_t number_ = 0;
};

// One machine and the process that may run on it.
class SimHost {
 public:
  SimHost(SimShared& shared, int index, ClaimOptions options, SequencerOptions sequencer);
  ~SimHost();

  // --- its life ---------------------------------------------------------------------------------
  void Start(bool connected);
  // The process is gone at once; its session stays, its late writes too, in ghost().
  void Kill();
  void Reboot(bool stale_file);
  void Stop();  // cleanly: takes its time
  // A round of its control loop; dies in it when told to.
  void Step();
  // Up to `want` ids.
  void Issue(uint64_t want);
  // Goes on later, in the middle: with clocks read and a tick computed before the pause.
  void PauseInStep();
  void DieSoon();
  // Before its process sends the next one, all this happens, and it hears of it later.
  void StopBeforeNextClaimOrRenewal(SeamCoordinator::Meanwhile meanwhile);
  void RunGhost();

  bool running() const { return process_ != nullptr; }
  // Null while it holds no claim.
  const Tenure* tenure() const { return running() ? process_->keeper.tenure() : nullptr; }
  bool Serves();  // takes one id
  int64_t session() const;
  void Disconnect();
  void Reconnect();
  void EndFaults();  // of its connection
  // The servers go down with all that was on its way to them; it connects again sooner or later.
  void LoseConnection();
  bool connected() const { return running() && process_->link->connected(); }
  std::string Status();

  SimDisk& disk() { return disk_; }
  HostClock& clock() { return clock_; }
  int index() const { return index_; }
  // What its process tells an operator; nothing when there is none.
  std::optional<ProviderReport> Report() const;
  // How far ahead of the truth any id clock here ever was: alarms told of it.
  Milliseconds skew() const { return skew_; }
  BootMs paused_until{};

 private:
  struct Process {
    Process(SimHost& host, uint64_t seed);

    SimStateFolder folder;
    SeededEntropy honest;
    StuckEntropy stuck;
    SimUser user;
    std::unique_ptr<FaultyCoordinator> link;
    SeamCoordinator seam;
    ClaimKeeper keeper;
    std::optional<Grant> start_permit;
    int64_t checked_claim = 0;  // whose base was looked at
    std::optional<KeeperTime> stale_time{};
    std::optional<Tick> stale_tick{};
    WallMs limit{};  // of the keeper, as of its last Tick
  };

  static std::unique_ptr<FaultyCoordinator> NewLink(SimHost& host);
  void TickKeeper(const KeeperTime& now);
  void LookAtClaim();
  void Record(const firn::Step& step);
  void Trace(const std::string& what) const;

  SimShared& shared_;
  const int index_;
  const ClaimOptions options_;
  const SequencerOptions sequencer_;
  SimDisk disk_;
  HostClock clock_;
  WallMs highest_bound_;  // of any process here, for the witness
  Milliseconds skew_{0};
  std::unique_ptr<Process> process_;
  std::unique_ptr<FaultyCoordinator> ghost_;  // of the last process: what it sent may yet arrive
};

}  // namespace firn
