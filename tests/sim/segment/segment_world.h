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
// database under its ledger and without a buffer, dated tags, and the tag `default`. Processes are
// killed, stopped, and started without their registry; requests and answers are lost or late;
// sessions end; tags are created, edited, disabled and deleted; the database goes back in time; the
// registry also does, and is then restored; dated tags pass midnights, and clocks are set. One seed
// is one world, and replays exactly.
//
// Throws a Violation at the first number that is issued twice, that does not rise in real time for
// the tag without a buffer, or that belongs to a period that has not begun or is over; when a tag's
// ids are issued in two forms or under a name that was never defined; when a defined tag is called
// unknown; and when service does not return after the end of all faults.
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
  void Sleep();
  void SetClocks();
  void RollBackRegistry();
  void Lose();
  void Restore();
  void DemandService();
  bool OneIn(uint64_t n) { return dice_.Below(n) == 0; }
  SegmentHost& AnyHost() { return *hosts_[dice_.Below(hosts_.size())]; }
  void Trace(const std::string& what) const;

  SeededEntropy dice_;
  const bool trace_;
  VirtualClock clock_;  // the servers' clock, from which the registry's is derived
  HostClock registry_clock_;
  MemoryTree tree_;
  SimDatabase database_;
  NumberOracle oracle_;
  PeriodOracle periods_;
  SegmentShared shared_;
  // A restore ends all edits of forms that tags may have been used in.
  const bool loses_data_;
  const bool sets_clocks_;
  FaultRates rates_;
  std::unique_ptr<SeededEntropy> fault_dice_;
  std::unique_ptr<SegmentOperator> operator_;
  std::vector<std::unique_ptr<SegmentHost>> hosts_;
  std::optional<MemoryTree::Image> backup_;
  std::optional<SimDatabase> old_database_;
  int restore_in_ = 0;  // steps until a restore; 0: none is needed
  uint64_t steps_ = 0;
};

}  // namespace firn
