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
  VirtualClock& clock;  // the true time
  MemoryTree& tree;
  OwnersOracle& oracle;
  SeededEntropy& dice;
  OwnersMutant mutant = OwnersMutant::kNone;
  size_t partitions = 2;  // number of partitions that issue numbers
  int64_t processes = 0;  // started so far
  // Returns whether a copied process may also hold the range that `process` requested at
  // `requested`.
  std::function<bool(int64_t process, BootMs requested)> of_copies{};
  std::function<bool(BootMs requested)> beside_rollback{};
  // Returns whether copies may have returned numbers above a range that any process requested then.
  std::function<bool(BootMs requested)> beside_copies{};
  std::function<void(const std::string& what)> trace{};

  bool OneIn(uint64_t n) { return dice.Below(n) == 0; }
};

// Returns the path of a partition's ledger. Numbers below the ledger may have been used.
std::string NumbersPath(size_t partition);

// A process that owns partitions. It consists of the product's Owners, ranges in memory, and
// threads that issue numbers from the ranges. A thread processes a call in steps, and may sleep
// between two steps.
class OwnersProcess {
 public:
  // `link` is null for a follower, which mirrors the process that leads it.
  OwnersProcess(OwnersShared& shared, const Clock& clock, std::string address, Milliseconds window,
                uint64_t seed, std::unique_ptr<FaultyCoordinator> link, bool watches);

  Owners& owners() { return owners_; }
  const Owners& owners() const { return owners_; }
  SimMirror& mirror() { return mirror_; }
  FaultyCoordinator* link() { return link_.get(); }
  const OwnersSeam& seam() const { return seam_; }
  std::unique_ptr<FaultyCoordinator> TakeLink() { return std::move(link_); }
  int64_t number() const { return number_; }  // identifies the process in this world

  // Runs one round of the control loop. The host delivers answers from the registry.
  void Tick();
  // Requests a range for each partition without one, and takes over ranges that have arrived.
  void Fetch();
  // Runs the next step of a random thread.
  void Call();
  // Returns whether a thread that takes a number now may answer with it.
  bool MayTake(size_t partition) const;

  // Turns a follower into an independent process with the memory of `first`.
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
    Range arriving{};  // becomes `range` at `arrives_at`
    uint64_t arriving_term = 0;
    std::optional<BootMs> arrives_at{};
    std::optional<BootMs> unload_at{};  // when a mutant drops the range of an ended term
    uint64_t shown_term = 0;            // the term that threads load
  };
  struct Thread {
    enum class Phase { kBegun, kLoaded, kTaken };
    size_t partition;
    Phase phase = Phase::kBegun;
    BootMs asleep_until{};
    uint64_t term = 0;
    int64_t number = 0;
    int64_t beyond = 0;  // OwnersOracle::Highest when the host took `number`
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

// A machine: its clock, and the process that may run on it.
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

  // `copied`: also starts a follower that mirrors the process, for Copy.
  void Start(const FaultPlan& plan, bool copied);
  void Kill();
  // Pauses or continues the process, like SIGSTOP and SIGCONT. Its clock continues.
  void Pause(bool paused) { paused_ = paused; }
  void HandOver();
  // Sets whether other servers can reach it. An unreachable server may not take partitions.
  void Permit(bool permitted);
  void Round();
  // Delivers late requests of dead processes.
  void RoundOfTheDead();

  bool has_copy() const { return up() && follower_ != nullptr; }
  // Continues a copy of the machine on `other`, which must be down.
  void Copy(OwnersHost& other, const FaultPlan& plan, int64_t parts_per_million);

  // Describes the state of the partition in its process, for a message.
  std::string Why(size_t partition) const;
  const Clock& clock() const { return clock_; }
  Milliseconds window() const { return window_; }
  const std::string& address() const { return address_; }
  void SetPlan(const FaultPlan& plan);
  // Drops the requests in flight, because the registry's servers were restarted.
  void LoseRequests();

 private:
  std::unique_ptr<FaultyCoordinator> NewLink(const FaultPlan& plan);
  template <typename Function>
  void ForBoth(Function function);

  OwnersShared& shared_;
  std::string address_;
  RateClock clock_;
  Milliseconds window_;
  bool paused_ = false, permitted_ = true;
  std::unique_ptr<OwnersProcess> process_, follower_;
  std::vector<std::unique_ptr<FaultyCoordinator>> dead_;  // may still have late writes
};

}  // namespace firn
