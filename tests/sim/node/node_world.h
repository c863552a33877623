#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "tests/sim/node/node_host.h"
#include "tests/sim/node/node_mutants.h"
#include "tests/sim/node/node_oracle.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// Whole nodes on several hosts in virtual time: of one cluster with a registry in memory, or with
// static machine ids. Each seed is one world, and can be replayed exactly.
//
// Throws a Violation at the first broken promise.
class NodeWorld {
 public:
  NodeWorld(uint64_t seed, NodeMutant mutant, const SimArguments& arguments);
  ~NodeWorld();

  // Runs all steps of the seed, then the end of all faults and the wait for service.
  void Run();

  SimCounts Counts() const;
  uint64_t digest() const { return tree_.digest(); }
  std::string text() const;

 private:
  void DrawSizes();
  void MakeCluster();
  void MakeTags(class BlockingCoordinator& registry);
  void MakeDefaultOnly();

  void Step();
  void PassTime();
  void Pass(Milliseconds wait);
  void ExpireSessions() { tree_.ExpireUntil(clock_.Boot(), shared_.expiring); }

  // --- faults (node_strikes.cc) -----------------------------------------------------------------
  void Strike();
  void StrikeClock(NodeHost& host);
  void StrikeDisk(NodeHost& host);
  void StrikeRegistry(NodeHost& host);
  void StrikeRegistryClock();
  void StrikeStatic(NodeHost& host);
  void Copy(NodeHost& host);
  void Boot(NodeHost& host);
  void SetOutage(bool outage);
  void LoseRegistry();

  // --- an older registry (node_put_back.cc) -----------------------------------------------------
  void PutBackRegistry();
  int64_t LedgerHigh() const;
  int64_t HighestReported() const;
  bool Frozen() const;
  bool Rounds(int rounds, bool serve, const std::function<bool()>& ended);
  void Restore();

  bool AllServe();
  void DemandService();

  NodeHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  Milliseconds UpTo(int64_t ms) {
    return Milliseconds(static_cast<int64_t>(dice_.Below(static_cast<uint64_t>(ms) + 1)));
  }
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }

  SeededEntropy dice_;
  VirtualClock clock_;
  HostClock registry_clock_;
  MemoryTree tree_;
  NodeOracle oracle_;
  NodeShared shared_;
  std::string layout_;
  int rack_bits_ = 0;
  int first_hosts_ = 1;
  int wanted_steps_ = 0;
  uint64_t fault_every_ = 1;
  size_t served_tags_ = 0;  // tags that each host must serve at the end
  std::vector<std::unique_ptr<NodeHost>> hosts_;
  bool outage_ = false;
  uint64_t put_back_at_ = 0;  // the step at which the registry is put back; 0: never
  bool put_back_ = false;     // the registry was put back, so the cluster may be frozen
  int64_t printed_high_ = 0;  // the ledger in the restore commands that were printed then
  bool lost_ = false;         // the registry returned empty
  bool passing_ = false;
  uint64_t steps_ = 0;
};

}  // namespace firn
