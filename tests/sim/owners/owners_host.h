#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "registry/owners/owners.h"
#include "registry/seam/callback_guard.h"
#include "tests/sim/copies/sim_mirror.h"
#include "tests/sim/owners/owners_mutants.h"
#include "tests/sim/owners/owners_oracle.h"
#include "tests/sim/owners/rate_clock.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// State that all hosts of a simulation share. Owned by the world.
struct OwnersShared {
  VirtualClock& clock;  // the truth
  MemoryTree& tree;
  OwnersOracle& oracle;
  SeededEntropy& dice;
  OwnersMutant mutant = OwnersMutant::kNone;
  size_t partitions = 2;  // in which numbers are taken
  int64_t processes = 0;  // ever
  // Whether a range that this process requested then may be in a copy's memory, too.
  std::function<bool(int64_t process, BootMs requested)> of_copies{};
  std::function<void(const std::string& what)> trace{};

  bool OneIn(uint64_t n) { return dice.Below(n) == 0; }
};

// The path of a partition's ledger: the numbers below it may have been used.
std::string NumbersPath(size_t partition);

// A process that owns partitions: the product's Owners, ranges in memory, and threads that answer
// calls from them in steps between which they may sleep.
class OwnersProcess {
 public:
  // A follower has no link; it is kept in step with the process that leads it.
  OwnersProcess(OwnersShared& shared, const Clock& clock, std::string address, Milliseconds window,
                uint64_t seed, std::unique_ptr<FaultyCoordinator> link, bool watches);

  Owners& owners() { return owners_; }
  const Owners& owners() const { return owners_; }
  SimMirror& mirror() { return mirror_; }
  FaultyCoordinator* link() { return link_.get(); }
  const OwnersSeam& seam() const { return seam_; }
  std::unique_ptr<FaultyCoordinator> TakeLink() { return std::move(link_); }
  int64_t number() const { return number_; }  // of the process, in this world

  // One round of the control loop, without the answers.
  void Tick();
  // Requests ranges where none is in memory.
  void Fetch();
  // Lets a thread do its next step.
  void Call();
  // Whether a thread that has just taken a number might answer with it.
  bool MayTake(size_t partition) const;

  // A follower becomes a process of its own, with the memory of the other one.
  void GoOn(const OwnersProcess& first, const Clock& clock,
            std::unique_ptr<FaultyCoordinator> link);

 private:
  struct Range {
    int64_t begin = 0, end = 0;
    BootMs requested{};
  };
  struct Memory {
    Range range{};
    bool fetching = false;
    Range arriving{};  // at `arrives_at`
    uint64_t arriving_term = 0;
    std::optional<BootMs> arrives_at{};
    std::optional<BootMs> unload_at{};  // of a mutant
    uint64_t shown_term = 0;            // what threads load
  };
  struct Thread {
    enum class Phase { kBegun, kLoaded, kTaken };
    size_t partition;
    Phase phase = Phase::kBegun;
    BootMs asleep_until{};
    uint64_t term = 0;
    int64_t number = 0;
    int64_t beyond = 0;  // the highest number that was answered before it was taken
    BootMs requested{};
  };

  static constexpr int64_t kStep = 50;
  static constexpr size_t kThreadsMax = 24;

  void OnEnded(size_t partition);
  void FetchOne(size_t partition);
  bool Holds(size_t partition, uint64_t term) const;
  bool DoNext(Thread& thread);
  bool TakeNumber(Thread& thread);

  OwnersShared& shared_;
  const Clock* clock_;
  const int64_t number_;
  std::unique_ptr<FaultyCoordinator> link_;
  SimMirror mirror_;
  OwnersSeam seam_;
  SeededEntropy entropy_;
  std::array<Memory, kPartitions> memory_;
  Owners owners_;
  std::vector<Thread> threads_;
  CallbackGuard guard_;
};

// A machine: a clock, and the process that may run on it.
class OwnersHost {
 public:
  OwnersHost(OwnersShared& shared, std::string address, int64_t parts_per_million,
             Milliseconds window);
  ~OwnersHost();

  bool up() const { return process_ != nullptr; }
  bool paused() const { return paused_; }
  bool permitted() const { return permitted_; }
  OwnersProcess& process() { return *process_; }
  const OwnersProcess& process() const { return *process_; }

  // `copied`: another process is kept in step with it, for Copy.
  void Start(const FaultPlan& plan, bool copied);
  void Kill();
  // SIGSTOP and SIGCONT: the clock goes on.
  void Pause(bool paused) { paused_ = paused; }
  void HandOver();
  // Whether other servers can reach it.
  void Permit(bool permitted);
  void Round();
  // Of a dead process.
  void RoundOfTheDead();

  bool has_copy() const { return up() && follower_ != nullptr; }
  // Resumes a copy of the machine on `other`, which must be down.
  void Copy(OwnersHost& other, const FaultPlan& plan, int64_t parts_per_million);

  // What its process knows of the partition, for people.
  std::string Why(size_t partition) const;
  Milliseconds window() const { return window_; }
  const std::string& address() const { return address_; }
  void SetPlan(const FaultPlan& plan);
  // The registry's servers are restarted: what was sent to them is not applied any more.
  void LoseRequests();

 private:
  std::unique_ptr<FaultyCoordinator> NewLink(const FaultPlan& plan);
  template <typename Function>
  void ForBoth(Function function);

  OwnersShared& shared_;
  std::string address_;
  RateClock clock_;
  const Milliseconds window_;
  bool paused_ = false, permitted_ = true;
  std::unique_ptr<OwnersProcess> process_, follower_;
  std::vector<std::unique_ptr<FaultyCoordinator>> dead_;  // may still have late writes
};

}  // namespace firn
