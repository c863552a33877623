#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/entropy.h"
#include "registry/faults.h"
#include "registry/memory_coordinator.h"
#include "tests/sim/mutants.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_host.h"
#include "tests/sim/witness.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// What may strike.
enum class Fault {
  kKill,
  kDieSoon,  // in the midst of a write to disk or registry
  kReboot,
  kStop,
  kPauseInStep,
  kPause,
  kCut,
  kClock,
  kDisk,
  kRegistry,
  kCount,
};

// How big a seed's world is and how often what goes wrong in it, drawn from the seed: one size
// hides the errors of another.
struct SimSizes {
  int hosts = 1;       // 1 to 5
  uint32_t slots = 1;  // 1 to 6
  int steps = 0;
  uint64_t fault_every = 0;  // steps, on average
  uint64_t start_every = 1;  // chances, until a host that is down comes back
  Milliseconds window{0};
  Milliseconds probation{0};
  std::string layout;
  FaultRates rates;
  std::array<uint64_t, static_cast<size_t>(Fault::kCount)> weights{};

  Fault Pick(SeededEntropy& dice) const;
  static SimSizes Draw(SeededEntropy& dice);
  std::string text() const;
};

// Several hosts that run the product's claim code, files included, against one registry in memory,
// in virtual time, with everything going wrong that may. One seed is one world, and replays
// exactly.
//
// Throws a Violation at the first broken promise.
class SimWorld {
 public:
  // `judging`: every invariant counts, not only ids that are given out twice, and service.
  SimWorld(uint64_t seed, Mutant mutant, bool judging, bool trace);
  ~SimWorld();

  // All the steps of the seed, then the end of all faults and the wait for service.
  void Run();

  uint64_t steps() const { return steps_; }
  uint64_t ids() const { return oracle_.ids(); }
  const SimSizes& sizes() const { return sizes_; }

 private:
  // --- time and ordinary life
  // ---------------------------------------------------------------------
  void Step();
  void PassTime();
  void ExpireSessions();
  void Act(SimHost& host);

  // --- faults
  // -------------------------------------------------------------------------------------
  void Strike();
  void StrikeClock(SimHost& host);
  void StrikeDisk(SimHost& host);
  void StrikeRegistry();
  void CopyGrant(SimHost& from, SimHost& to);
  void RollBack();
  void Restore();

  // --- the end of all faults
  // ----------------------------------------------------------------------
  void EndFaults();
  void DemandService();
  size_t HostsServing();
  Milliseconds LongestWait() const;

  void MakeRegistry();
  bool ReadsFrozen() const;
  std::string RegistryText() const;
  SimHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  Milliseconds UpTo(int64_t ms) {
    return Milliseconds(static_cast<int64_t>(dice_.Below(static_cast<uint64_t>(ms) + 1)));
  }
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }
  void Trace(const std::string& what) const;

  SeededEntropy dice_;
  SimSizes sizes_;
  VirtualClock clock_;
  MemoryTree tree_;
  IssueOracle oracle_;
  ClaimBook book_;
  SimShared shared_;
  std::vector<std::unique_ptr<SimHost>> hosts_;
  std::string uuid_;

  std::optional<MemoryTree::Image> backup_;
  bool outage_ = false;
  uint64_t steps_ = 0;
};

}  // namespace firn
