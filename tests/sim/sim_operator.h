#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/operate/restore.h"
#include "tests/sim/sim_host.h"
#include "tests/sim/sim_sizes.h"
#include "tests/support/registry/faults.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Whoever looks after a simulated cluster's registry: makes it, saves it, loses it, deletes what
// should have stayed, and restores it. He knows what is in the tree, what servers that run say of
// themselves, how wrong clocks have been (--skew_max_ms), and where ids began after his last
// restore (--bound_ms), nothing more; he is not always left to finish, nor always alone.
class SimOperator {
 public:
  using Hosts = std::vector<std::unique_ptr<SimHost>>;

  // All references must outlive the object.
  SimOperator(SimShared& shared, const SimSizes& sizes, const Hosts& hosts)
      : shared_(shared), sizes_(sizes), hosts_(hosts) {}

  void MakeCluster();
  void SaveBackup() { backup_ = shared_.tree.Save(); }

  // Rolled back to the backup, or wiped. Sessions end with the data, or outlive them: a backup may
  // hold them.
  void LoseData();

  // One slot's record goes, whoever holds it.
  void DeleteRecord();

  // Wiped, made anew above all that is known, and used until root node and a record have come to
  // the very versions that a host remembers of them; sessions stay. The host is a holder that is
  // cut off, or one that is stopped between reading and writing and hears of nothing before it
  // writes.
  void RepeatNumbers(SimHost& host);

  // To the end, undisturbed.
  void Restore();
  // Perhaps not to the end, and perhaps crossed by a second restore.
  void TryRestore();

  // What restoring is for: no data lost, nothing frozen, every record there.
  bool IsWhole() const;

  // How long a claimant may have to wait for a slot that nobody is in: up to its bound, which a
  // clock that was wrong may have put far ahead.
  Milliseconds LongestWait() const;

  // What stands in the registry, for whoever reads about a broken promise.
  std::string RegistryText() const;

 private:
  std::vector<Slot> Slots() const;
  void MakeAnewUpTo(const SlotNumbers& known, int64_t sets_left, const SimHost* cut_off);
  void MakeClusterUnder(WallMs floor);
  int64_t NearTheWrap();
  RestoreFacts Facts() const;
  bool RunRestore(FaultPlan plan);
  FaultPlan Interruption();
  FaultPlan Crossing();
  bool OneIn(uint64_t n) { return shared_.dice.Below(n) == 0; }

  SimShared& shared_;
  const SimSizes& sizes_;
  const Hosts& hosts_;
  // Where ids begin at the earliest since he last made or restored the cluster.
  struct Lifted {
    WallMs floor;
    WallMs at;
  };

  std::string uuid_;
  std::optional<Lifted> lifted_;
  std::optional<MemoryTree::Image> backup_;
};

}  // namespace firn
