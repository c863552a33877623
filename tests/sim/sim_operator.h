#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore/restore_options.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/sim/sim_host.h"
#include "tests/sim/sim_sizes.h"
#include "tests/support/registry/faults.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// The operator of a simulated registry: creates it, makes backups, loses its data, deletes records
// and restores it. A restore uses only the tree, the reports of running servers, the largest clock
// error (--skew_max_ms), and the files of `firn backup` (--from): one of each cluster that was
// created or restored, and one of each backup. It may be interrupted, or run concurrently with
// another one.
class SimOperator {
 public:
  using Hosts = std::vector<std::unique_ptr<SimHost>>;

  // All references must outlive the object.
  SimOperator(SimShared& shared, const SimSizes& sizes, const Hosts& hosts)
      : shared_(shared), sizes_(sizes), hosts_(hosts) {}

  void MakeCluster();
  void SaveBackup();

  // Rolls the registry back to the backup, or wipes it. Sessions end or remain, since a backup may
  // contain them.
  void LoseData();

  // Wipes the registry. If `announced` returns true, restores the lost cluster. Otherwise creates a
  // cluster, as `firn init --brand_new` does. Returns whether it was created.
  bool LoseAndInit(const std::function<bool()>& announced);

  // Deletes one slot's record, whether or not the slot is held.
  void DeleteRecord();

  // Wipes the registry, re-creates it above all known bounds, and writes to it until the root node
  // and a record have the versions that a host remembers. Sessions remain. The host is a holder
  // that is disconnected, or a process that is paused between reading and writing and gets no
  // notification before it writes.
  void RepeatNumbers(SimHost& host);

  // Restores completely, without interruption.
  void Restore();
  // Restores, perhaps incompletely, and perhaps concurrently with a second restore.
  void TryRestore();

  // Returns whether the registry is fully restored: no data are lost, the cluster is not frozen,
  // and every record exists.
  bool IsWhole() const;

  // Returns how long a server may have to wait for a slot without a holder: until the slot's bound,
  // which a wrong clock may have set far ahead.
  Milliseconds LongestWait() const;

  // Returns the registry's contents as text, for the message of a violation.
  std::string RegistryText() const;

 private:
  std::vector<Slot> Slots() const;
  void RecreateSlotUpTo(const SlotNumbers& known, int64_t sets_left, const SimHost* cut_off);
  void MakeClusterUnder(WallMs floor);
  int64_t NearTheWrap();
  Status Make(ClusterPlan plan);
  // Replaces the registry by `back_to`; null: by an empty registry.
  void Lose(const MemoryTree::Image* back_to, bool sessions_end);
  RestoreFacts Facts() const;
  Milliseconds SkewMax() const;
  RestoreOptions Options(bool again) const;
  bool PublishAll();
  // Adds a document of the registry, if it can be read.
  void TakeDocument();
  bool RunRestore(FaultPlan plan);
  Result<WallMs> RunSteps(BlockingCoordinator& registry);
  Result<WallMs> RunCommand(BlockingCoordinator& registry);
  FaultPlan Interruption();
  FaultPlan Crossing();
  bool OneIn(uint64_t n) { return shared_.dice.Below(n) == 0; }

  SimShared& shared_;
  const SimSizes& sizes_;
  const Hosts& hosts_;
  std::string uuid_;
  bool replaces_ = false;          // the next restore replaces a cluster that was never used
  std::vector<Backup> documents_;  // of this cluster
  std::optional<MemoryTree::Image> backup_;
};

}  // namespace firn
