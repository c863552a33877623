#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/restore.h"
#include "tests/sim/sim_host.h"
#include "tests/sim/sim_sizes.h"
#include "tests/support/registry/faults.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// The operator of a simulated cluster's registry: creates it, backs it up, loses it, deletes
// records and restores it. The operator knows only the tree, the reports of running servers, how
// wrong clocks have been (--skew_max_ms), and where ids began after the last restore
// (--set=floor).
// A restore may be interrupted or run concurrently with another one.
class SimOperator {
 public:
  using Hosts = std::vector<std::unique_ptr<SimHost>>;

  // All references must outlive the object.
  SimOperator(SimShared& shared, const SimSizes& sizes, const Hosts& hosts)
      : shared_(shared), sizes_(sizes), hosts_(hosts) {}

  void MakeCluster();
  void SaveBackup() { backup_ = shared_.tree.Save(); }

  // Rolls the registry back to the backup, or wipes it. Sessions end with the data, or outlive
  // them: a backup may contain them.
  void LoseData();

  // Wipes the registry, and creates a cluster as `firn init --brand_new` does, unless `announced`
  // returns true: then restores the lost cluster. Returns whether a cluster was created.
  bool LoseAndInit(const std::function<bool()>& announced);

  // Deletes one slot's record, whether or not the slot is held.
  void DeleteRecord();

  // Wipes the registry, re-creates it above everything that is known, and uses it until the root
  // node and a record have the very versions that a host remembers of them; sessions remain. The
  // host is a holder that is cut off, or one that is stopped between reading and writing and is not
  // notified before it writes.
  void RepeatNumbers(SimHost& host);

  // Restores completely, without interruption.
  void Restore();
  // Restores, perhaps incompletely, and perhaps concurrently with a second restore.
  void TryRestore();

  // The purpose of restoring: no data are lost, nothing is frozen, and every record exists.
  bool IsWhole() const;

  // How long a claimant may have to wait for a slot without a holder: until its bound, which a
  // wrong clock may have put far ahead.
  Milliseconds LongestWait() const;

  // Returns the registry's contents as text, for the message about a broken promise.
  std::string RegistryText() const;

 private:
  std::vector<Slot> Slots() const;
  void RecreateSlotUpTo(const SlotNumbers& known, int64_t sets_left, const SimHost* cut_off);
  void MakeClusterUnder(WallMs floor);
  int64_t NearTheWrap();
  Status Make(ClusterPlan plan);
  // `back_to`: null: an empty registry.
  void Lose(const MemoryTree::Image* back_to, bool sessions_end);
  RestoreFacts Facts() const;
  bool RunRestore(FaultPlan plan);
  FaultPlan Interruption();
  FaultPlan Crossing();
  bool OneIn(uint64_t n) { return shared_.dice.Below(n) == 0; }

  SimShared& shared_;
  const SimSizes& sizes_;
  const Hosts& hosts_;
  // The earliest begin of ids since the operator last created or restored the cluster.
  struct Lifted {
    WallMs floor;
    WallMs at;
  };

  std::string uuid_;
  bool replaces_ = false;  // the next restore replaces a cluster that was never used
  std::optional<Lifted> lifted_;
  std::optional<MemoryTree::Image> backup_;
};

}  // namespace firn
