#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "tests/sim/leases/lease_host.h"
#include "tests/sim/leases/lease_net.h"
#include "tests/sim/leases/lease_operator.h"
#include "tests/sim/leases/lease_program.h"
#include "tests/sim/leases/lease_shared.h"

namespace firn {

// Servers that lease machine ids, programs that issue ids under leases, and one registry, in
// virtual time, with faults. Each seed is one world, and can be replayed exactly.
//
// Throws a Violation at the first broken promise.
class LeaseWorld {
 public:
  LeaseWorld(uint64_t seed, LeaseMutant mutant, const SimArguments& arguments);

  // Runs all steps of the seed, then the end of all faults and the wait for service.
  void Run();

  // Counts of everything that happened, by name.
  SimCounts Counts();
  uint64_t digest() const { return tree_.digest(); }
  std::string text() const;

 private:
  void DrawSizes();
  void DrawCopies(uint64_t seed);
  ClaimOptions ClaimOf(int index) const;
  void Step();
  void PassTime();
  void ExpireSessions() { tree_.ExpireUntil(clock_.Boot(), shared_.expiring); }
  void RoundOf(LeaseProgram& program);

  // --- faults (lease_strikes.cc) ----------------------------------------------------------------
  void Strike();
  void StrikeHost(LeaseHost& host);
  void StrikeProgram(LeaseProgram& program);
  void StrikeClock(HostClock& clock);
  void CopyProgram(LeaseProgram& program);
  void CopyServer(LeaseHost& host);
  void WakeCopies();
  void StrikeRegistry();
  void SetOutage(bool outage);
  void StrikeData();
  void PutBack();
  void StrikeStop();
  std::vector<KeptBound> LoweredBy(const LeaseHost& host) const;
  void NoteLostClaim(const KeptBound& lowered);

  // --- the end of all faults --------------------------------------------------------------------
  void EndFaults();
  void QuietRound();
  void DemandService();
  void DemandDetection();
  void DemandExtension();
  std::vector<LeaseProgram*> Lessees() const;
  std::optional<WallMs> FinalBoundOf(const LeaseProgram& program) const;
  size_t ProgramsWanted() const;
  Milliseconds LongestWait() const;

  LeaseHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  LeaseProgram& AnyProgram() { return *programs_[dice_.Below(programs_.size())]; }
  Milliseconds UpTo(int64_t ms) { return shared_.UpTo(ms); }
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }

  SeededEntropy dice_;
  SeededEntropy stop_dice_;  // separate, so that worlds without such losses do not change
  VirtualClock clock_;
  HostClock registry_clock_;
  MemoryTree tree_;
  LeaseOracle oracle_;
  LeaseTwins twins_{oracle_};
  LeaseShared shared_;
  bool is_honest_ = true;  // without a mutant
  size_t first_hosts_ = 1;
  size_t first_programs_ = 1;
  uint32_t slots_ = 1;
  int64_t lease_share_ = 50;
  int64_t wanted_steps_ = 0;
  int64_t steps_ = 0;
  uint64_t fault_every_ = 0;
  bool outage_ = false;
  bool keeps_frozen_ = false;
  bool loses_data_ = false;
  bool has_grants_ = true;
  bool clocks_differ_ = false;  // by seconds, from the start
  bool loses_stops_ = false;    // see StrikeStop
  LeaseHost* stopped_ = nullptr;
  BootMs restore_at_;
  BootMs faults_ended_;
  // Copies of servers that do not run yet.
  struct Asleep {
    std::unique_ptr<LeaseHost> copy;
    BootMs since;
    BootMs until;
  };
  std::vector<Asleep> asleep_;
  LeaseNet::Hosts hosts_;
  LeaseNet net_{shared_, hosts_};
  LeaseOperator operator_{shared_, hosts_};
  std::vector<std::unique_ptr<LeaseProgram>> programs_;
};

}  // namespace firn
