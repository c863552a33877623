#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "tests/sim/mutants.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_host.h"
#include "tests/sim/sim_operator.h"
#include "tests/sim/sim_sizes.h"
#include "tests/sim/witness.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// Several hosts that run the product's claim code, with its files and one registry in memory, in
// virtual time and with all kinds of faults. A seed determines the world, so a run can be repeated
// exactly.
//
// Throws a Violation at the first broken promise.
class SimWorld {
 public:
  // --duplicates: checks only that no id is issued twice.
  SimWorld(uint64_t seed, Mutant mutant, const SimArguments& arguments);
  ~SimWorld();

  // Runs all steps of the seed, then the end of all faults and the wait for service.
  void Run();

  SimCounts Counts() const;
  uint64_t digest() const { return tree_.digest(); }
  std::string text() const { return sizes_.text(); }

 private:
  // --- time and ordinary life -------------------------------------------------------------------
  void Step();
  void PassTime();
  void ExpireSessions() { tree_.ExpireUntil(clock_.Boot(), shared_.expiring); }
  void Act(SimHost& host);

  // --- faults -----------------------------------------------------------------------------------
  void Strike();
  void StrikeClock(SimHost& host);
  void StrikeDisk(SimHost& host);
  void StrikeRegistry();
  void StrikeRegistryClock();
  void StrikeWithCopy(SimHost& host);
  void WakeCopies();
  void StartClock(SimHost& host);
  void SetOutage(bool outage);

  // --- firn init --brand_new over a lost cluster (world_init.cc) --------------------------------
  void LoseAndInit();
  bool AllCanLook() const;
  // Returns whether a server of the lost cluster registers while init waits.
  bool AnyoneAnnounces();

  // --- the end of all faults --------------------------------------------------------------------
  void EndFaults();
  // Returns false if service cannot be required.
  bool DemandService();
  void DemandSteadiness();
  size_t HostsWanted() const;
  size_t HostsServing();
  Milliseconds LongestLead() const;  // longest lead of ids over their machine's wall clock

  // An earlier state of a machine, until it resumes.
  struct Asleep {
    SimHost* copy;
    SimHost* original;
    BootMs since;
    BootMs until;
  };

  ClaimOptions NewOptions(int index);
  void DemandNoTwins();

  SimHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  Milliseconds UpTo(int64_t ms) {
    return Milliseconds(static_cast<int64_t>(dice_.Below(static_cast<uint64_t>(ms) + 1)));
  }
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }

  SeededEntropy dice_;
  SimSizes sizes_;
  VirtualClock clock_;
  HostClock registry_clock_;
  MemoryTree tree_;
  IssueOracle oracle_;
  ClaimBook book_;
  SimShared shared_;
  std::vector<std::unique_ptr<SimHost>> copies_;  // mirrors; none runs independently
  std::vector<std::unique_ptr<SimHost>> hosts_;
  std::vector<Asleep> asleep_;
  SimOperator operator_;
  bool outage_ = false;
  uint64_t steps_ = 0;
};

}  // namespace firn
