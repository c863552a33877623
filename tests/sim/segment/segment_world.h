#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/segment/segment_host.h"
#include "tests/sim/segment/segment_operator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Several hosts that serve the same tags in virtual time: segment tags of the registry, of a
// database under its ledger and without a buffer, dated tags, and the tag `default`; in half of the
// worlds also tags with buffer = owner. Processes are killed, paused, stopped, started without
// their registry, and cut off from each other. Requests and answers are lost or late, and
// sessions end. Tags are created, edited, disabled and deleted. The database is rolled back to an
// older state. So is the registry, which is then restored. Dated tags pass midnights, and clocks
// are set. A seed determines the world, so a run can be repeated exactly.
//
// Throws a Violation if a number is issued twice, does not rise in real time for the tags `raw`
// (without a buffer) and `order` (with owners), or belongs to a period that has not begun or is
// over. Also throws if a tag's ids are issued in two forms or under a name that was never defined,
// if a defined tag is reported as unknown, or if service does not return after the end of all
// faults.
class SegmentWorld {
 public:
  SegmentWorld(uint64_t seed, SegmentMutant mutant, const SimArguments& arguments);
  ~SegmentWorld();

  void Run();

  SimCounts Counts() const;
  uint64_t digest() const { return tree_.digest(); }
  std::string text() const { return std::to_string(hosts_.size()) + " hosts"; }

 private:
  void Step();
  void Strike();
  void StrikeOrder(SegmentHost& host);
  void Sleep();
  void SetClocks();
  void RollBackRegistry();
  void Lose();
  void Restore(bool completely);
  void RunHost(SegmentHost& host);
  void Pass(Milliseconds time);
  void DemandService();
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }
  SegmentHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  void Trace(const std::string& what) const;

  SeededEntropy dice_;
  const bool trace_;
  VirtualClock clock_;  // the servers' clock, from which the registry's clock is derived
  HostClock registry_clock_;
  MemoryTree tree_;
  SimDatabase database_;
  NumberOracle oracle_;
  PeriodOracle periods_;
  SimPeers peers_;
  SegmentShared shared_;
  // After a restore, no edit changes a form in which a tag may have issued ids.
  const bool loses_data_;
  const bool ordered_;  // with tags whose numbers have owners
  const bool sets_clocks_;
  FaultRates rates_;
  std::unique_ptr<SeededEntropy> fault_dice_;
  std::unique_ptr<SegmentOperator> operator_;
  std::vector<std::unique_ptr<SegmentHost>> hosts_;
  std::optional<MemoryTree::Image> backup_;
  std::optional<SimDatabase> old_database_;
  int restore_in_ = 0;       // steps until a restore; 0: none is needed
  bool documented_ = false;  // the operator has a document of the registry at the loss
  uint64_t steps_ = 0;
};

}  // namespace firn
